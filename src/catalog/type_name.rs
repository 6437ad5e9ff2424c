//! Vendor type names: the licence series that NVIDIA writes into them, and the traits that names give.
//!
//! 1. A name that does not have the whole form has no series: `GRID RTX T4-4` and `NVIDIA RTXA6000-12` have none.
//! 2. A type without a name has no name trait; its id never takes the name's place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use crate::model::TraitName;

/// NVIDIA's licence series, the letter after the size in a type's name.
///
/// # Source
/// NVIDIA Virtual GPU Software User Guide, "About Virtual GPU Types".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Series {
    /// Virtual applications.
    A,
    /// Virtual desktops.
    B,
    /// Compute.
    C,
    /// Virtual workstations.
    Q,
}

impl Series {
    fn from_letter(letter: char) -> Option<Self> {
        [Self::A, Self::B, Self::C, Self::Q].into_iter().find(|series| series.letter() == letter)
    }

    fn letter(self) -> char {
        match self {
            Self::A => 'A',
            Self::B => 'B',
            Self::C => 'C',
            Self::Q => 'Q',
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// The parts of an NVIDIA type name, `NVIDIA A100-1-5CME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VgpuName<'a> {
    /// Board, without the brand: `A100`, `RTX6000-Ada`, `RTX Pro 6000 Blackwell DC`.
    pub board: &'a str,
    /// GPU slices of a MIG-backed type, 1-9; `None` for a time-sliced one.
    pub slices: Option<u8>,
    /// Size and series as written, `5C`; never a measure of the framebuffer (`18C` may have 18 GiB, `0Q` has half of one).
    pub size: &'a str,
    /// Licence series.
    pub series: Series,
    /// What follows the letter: a digit (`2B4`), `ME`, `NOME`, `MEALL`, `GFX`, or nothing.
    pub suffix: &'a str,
}

/// Suffixes of MIG-backed types, for the media engines and the graphics engine of the GPU instance.
const MIG_SUFFIXES: [&str; 4] = ["ME", "NOME", "MEALL", "GFX"];

impl<'a> VgpuName<'a> {
    /// Takes a name apart; `None` for a name of another vendor, and for NVIDIA's names without a series letter.
    ///
    /// # Source
    /// Type names of NVIDIA open-gpu-kernel-modules 595.45.04 and of vgpuConfig.xml 510.47.03; NVIDIA vgpu-device-manager.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (brand, rest) = name.trim().split_once(char::is_whitespace)?;
        if !["GRID", "NVIDIA"].contains(&brand) {
            return None;
        }
        let (head, tail) = rest.trim_start().rsplit_once('-')?;
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        let series = Series::from_letter(tail[digits..].chars().next()?)?;
        let (size, suffix) = tail.split_at(digits + 1);
        let (board, slices) = mig(head);
        let known = match suffix.len() {
            0 => true,
            1 => suffix.bytes().all(|b| b.is_ascii_digit()),
            _ => slices.is_some() && MIG_SUFFIXES.contains(&suffix),
        };
        (digits > 0 && known && !board.is_empty()).then_some(Self { board, slices, size, series, suffix })
    }
}

/// Splits the slice count of a MIG-backed type off the board.
fn mig(head: &str) -> (&str, Option<u8>) {
    let split = head.rsplit_once('-').and_then(|(board, count)| {
        let count = count.parse().ok().filter(|n| (1..=9).contains(n) && count.len() == 1)?;
        Some((board, Some(count)))
    });
    split.unwrap_or((head, None))
}

/// The series of a type as a trait, `CUSTOM_VGPU_SERIES_Q`; `None` for a name without a series.
pub fn licence_trait(name: &str) -> Option<TraitName> {
    format!("CUSTOM_VGPU_SERIES_{}", VgpuName::parse(name)?.series).parse().ok()
}

/// Traits that two or more different names give, with those names: neither may have it, for it would mean two types.
pub fn shared_name_traits<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<TraitName, BTreeSet<&'a str>> {
    let mut all: BTreeMap<TraitName, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        if let Some(word) = TraitName::for_type_name(name) {
            all.entry(word).or_default().insert(name);
        }
    }
    all.retain(|_, names| names.len() > 1);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Option<(&str, Option<u8>, &str, Series, &str)> {
        VgpuName::parse(name).map(|n| (n.board, n.slices, n.size, n.series, n.suffix))
    }

    #[test]
    fn names_come_apart() {
        for (name, want) in [
            ("GRID T4-2Q", ("T4", None, "2Q", Series::Q, "")),
            ("GRID M10-2B4", ("M10", None, "2B", Series::B, "4")),
            ("GRID M60-0B", ("M60", None, "0B", Series::B, "")),
            (" NVIDIA A40-24A ", ("A40", None, "24A", Series::A, "")),
            ("NVIDIA A100-1-5CME", ("A100", Some(1), "5C", Series::C, "ME")),
            ("GRID A100D-7-80C", ("A100D", Some(7), "80C", Series::C, "")),
            ("NVIDIA RTX6000-Ada-4Q", ("RTX6000-Ada", None, "4Q", Series::Q, "")),
            ("NVIDIA L40S-4Q", ("L40S", None, "4Q", Series::Q, "")),
            (
                "NVIDIA RTX Pro 6000 Blackwell DC-48C",
                ("RTX Pro 6000 Blackwell DC", None, "48C", Series::C, ""),
            ),
            (
                "NVIDIA RTX Pro 6000 Blackwell DC-1-2Q",
                ("RTX Pro 6000 Blackwell DC", Some(1), "2Q", Series::Q, ""),
            ),
            (
                "NVIDIA RTX Pro 6000 Blackwell DC-2-12QGFX",
                ("RTX Pro 6000 Blackwell DC", Some(2), "12Q", Series::Q, "GFX"),
            ),
            ("NVIDIA H200X-141C", ("H200X", None, "141C", Series::C, "")),
        ] {
            assert_eq!(parts(name), Some(want), "{name}");
        }
    }

    #[test]
    fn other_names_have_no_series() {
        for name in [
            "GRID RTX T4-4",
            "NVIDIA RTXA6000-12",
            "NVIDIA GeForce RTX 3060",
            "GRID K120Q",
            "NVIDIA A40-24a",
            "NVIDIA A40-24QX",
            "NVIDIA A40-5CME",
            "NVIDIA A40-Q",
            "NVIDIA -4Q",
            "NVIDIA 4Q",
            "Demo A40-4Q",
            "nvidia-746",
            "1150",
            "i915-GVTg_V5_4",
            "Single port serial",
            "NVIDIA A40-4Ä",
            "",
        ] {
            assert_eq!(parts(name), None, "{name}");
            assert_eq!(licence_trait(name), None, "{name}");
        }
        assert_eq!(licence_trait("GRID M10-2B4").unwrap().as_str(), "CUSTOM_VGPU_SERIES_B");
        assert_eq!(licence_trait("NVIDIA A100-1-5CME").unwrap().as_str(), "CUSTOM_VGPU_SERIES_C");
    }

    #[test]
    fn names_become_traits() {
        for (name, want) in [
            ("GRID A100-1-5C", "CUSTOM_GRID_A100_1_5C"),
            ("GRID A100-1-5CME", "CUSTOM_GRID_A100_1_5CME"),
            ("Demo v1.5/x+me", "CUSTOM_DEMO_V1_5_X_ME"),
            ("Demo  v1.5", "CUSTOM_DEMO_V1_5"),
            ("I/O subchannel (Non-QDIO)", "CUSTOM_I_O_SUBCHANNEL_NON_QDIO"),
            ("Größe__x", "CUSTOM_GR_E_X"),
        ] {
            assert_eq!(TraitName::for_type_name(name).unwrap().as_str(), want, "{name}");
        }
        for none in ["", " - ", "ÄÖ", &"x".repeat(249)] {
            assert_eq!(TraitName::for_type_name(none), None, "{none}");
        }
        assert_eq!(TraitName::for_type_name(&"x".repeat(248)).unwrap().as_str().len(), 255);
    }

    #[test]
    fn names_that_fall_together_are_found() {
        let shared = shared_name_traits([
            "Demo v1.5/x+me",
            "Demo v1 5 x me",
            "GRID A100-1-5C",
            "GRID A100-1-5CME",
            "GRID A100-1-5C",
        ]);
        assert_eq!(shared.len(), 1);
        let (word, names) = shared.first_key_value().unwrap();
        assert_eq!(word.as_str(), "CUSTOM_DEMO_V1_5_X_ME");
        assert_eq!(names.len(), 2);
    }
}
