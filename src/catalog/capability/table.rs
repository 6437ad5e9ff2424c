//! `capabilities.toml`, read once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::catalog::type_name::Series;
use crate::model::TraitName;

/// NVIDIA's name for a generation of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "proper names")]
pub enum Architecture {
    Maxwell,
    Pascal,
    Volta,
    Turing,
    Ampere,
    #[serde(rename = "Ada Lovelace")]
    AdaLovelace,
    Hopper,
    Blackwell,
}

/// How a board is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Form {
    /// A card in a slot.
    #[serde(rename = "PCIe")]
    Pcie,
    /// On a baseboard with NVLink between GPUs.
    #[serde(rename = "SXM")]
    Sxm,
    /// On a blade's mezzanine.
    #[serde(rename = "MXM")]
    Mxm,
    /// One module with the CPU.
    #[serde(rename = "module")]
    Module,
}

/// A board that carries vGPUs.
#[derive(Debug, Clone)]
pub struct Card {
    /// Product name.
    pub board: String,
    /// Generation.
    pub architecture: Architecture,
    /// How it is attached.
    pub form: Form,
    /// Its compute capability as a trait.
    pub cuda: TraitName,
    /// Sizes of the only types with CUDA, `8Q`; `None` where the series decides alone.
    pub(super) cuda_only: Option<Vec<String>>,
}

/// Traits of graphics and compute interfaces.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) series: Vec<Series>,
    pub(super) needs_cuda: bool,
    pub(super) traits: Vec<TraitName>,
}

/// The whole table, with every trait name made and checked.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) heads: Vec<(u32, TraitName)>,
    pub(super) resolutions: Vec<((u32, u32), TraitName)>,
    pub(super) cuda_series: Vec<Series>,
    pub(super) cards: BTreeMap<(u16, u16), Card>,
    pub(super) apis: Vec<Api>,
}

/// The table as built in.
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        // The text cannot change after the tests read it (`every_row_is_good`), so that no user meets the default.
        Table::parse(include_str!("../capabilities.toml")).unwrap_or_default()
    });
    &TABLE
}

/// Reads `7680x4320`.
pub(super) fn size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// What is wrong with a row.
#[derive(Debug)]
pub(super) struct BadRow(String);

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sources: BTreeMap<String, String>,
    heads: Numbers<u32>,
    resolution: Numbers<String>,
    cuda: Cuda,
    api: Vec<ApiRow>,
    card: Vec<CardRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers<T> {
    standard: Vec<T>,
    #[serde(default = "Vec::new")]
    custom: Vec<T>,
    source: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cuda {
    standard: Vec<String>,
    series: Vec<Series>,
    source: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiRow {
    series: Vec<Series>,
    needs_cuda: bool,
    standard: Vec<String>,
    custom: Vec<String>,
    source: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardRow {
    board: String,
    architecture: Architecture,
    form: Form,
    vendor: String,
    devices: Vec<String>,
    cuda: String,
    cuda_only: Option<Vec<String>>,
    source: Vec<String>,
}

impl Table {
    /// Reads the file.
    ///
    /// # Errors
    /// The first row that is not understood, makes no trait, names no known source, or repeats a board.
    pub(super) fn parse(text: &str) -> Result<Self, BadRow> {
        let file: File = toml::from_str(text).map_err(|err| BadRow(err.to_string()))?;
        file.check_sources()?;
        let mut table = Self { cuda_series: file.cuda.series.clone(), ..Self::default() };
        for count in &file.heads.standard {
            table.heads.push((*count, standard(&format!("MAX_DISPLAY_HEADS_{count}"))?));
        }
        for (text, make) in file.resolution.both() {
            let (width, height) = size(text).ok_or_else(|| BadRow(format!("resolution {text}")))?;
            table.resolutions.push(((width, height), make(&format!("RESOLUTION_W{width}H{height}"))?));
        }
        for row in &file.api {
            let made = row.standard.iter().map(|word| standard(&format!("API_{word}")));
            let own = row.custom.iter().map(|word| custom(&format!("API_{word}")));
            let traits = made.chain(own).collect::<Result<_, _>>()?;
            table.apis.push(Api { series: row.series.clone(), needs_cuda: row.needs_cuda, traits });
        }
        for row in &file.card {
            table.add_card(row, &file.cuda.standard)?;
        }
        Ok(table)
    }

    fn add_card(&mut self, row: &CardRow, cuda_standard: &[String]) -> Result<(), BadRow> {
        let word = format!("CUDA_COMPUTE_CAPABILITY_V{}", row.cuda.replace('.', "_"));
        let cuda = if cuda_standard.contains(&row.cuda) { standard(&word)? } else { custom(&word)? };
        let vendor = pci_id(&row.vendor)?;
        for device in &row.devices {
            let card = Card {
                board: row.board.clone(),
                architecture: row.architecture,
                form: row.form,
                cuda: cuda.clone(),
                cuda_only: row.cuda_only.clone(),
            };
            if self.cards.insert((vendor, pci_id(device)?), card).is_some() {
                return Err(BadRow(format!("{}: {device} is there twice", row.board)));
            }
        }
        Ok(())
    }

    /// Every trait that any row gives.
    pub(super) fn all_traits(&self) -> impl Iterator<Item = &TraitName> {
        let display =
            self.heads.iter().map(|(_, name)| name).chain(self.resolutions.iter().map(|(_, name)| name));
        display
            .chain(self.cards.values().map(|card| &card.cuda))
            .chain(self.apis.iter().flat_map(|api| &api.traits))
    }
}

type Make = fn(&str) -> Result<TraitName, BadRow>;

impl<T> Numbers<T> {
    fn both(&self) -> impl Iterator<Item = (&T, Make)> {
        let standard = self.standard.iter().map(|n| (n, standard as Make));
        standard.chain(self.custom.iter().map(|n| (n, custom as Make)))
    }
}

impl File {
    fn check_sources(&self) -> Result<(), BadRow> {
        let named = [&self.heads.source, &self.resolution.source, &self.cuda.source];
        let rows = self.api.iter().map(|row| &row.source).chain(self.card.iter().map(|row| &row.source));
        for source in named.into_iter().chain(rows) {
            if source.is_empty() {
                return Err(BadRow("a row has no source".to_owned()));
            }
            if let Some(bad) = source.iter().find(|key| !self.sources.contains_key(*key)) {
                return Err(BadRow(format!("no source {bad}")));
            }
        }
        Ok(())
    }
}

fn standard(word: &str) -> Result<TraitName, BadRow> {
    format!("HW_GPU_{word}").parse().map_err(|err| BadRow(format!("{err}")))
}

fn custom(word: &str) -> Result<TraitName, BadRow> {
    format!("CUSTOM_HW_GPU_{word}").parse().map_err(|err| BadRow(format!("{err}")))
}

fn pci_id(text: &str) -> Result<u16, BadRow> {
    let good = text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    good.then(|| u16::from_str_radix(text, 16).ok()).flatten().ok_or_else(|| BadRow(format!("PCI id {text}")))
}
