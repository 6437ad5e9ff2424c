//! Times as people and files write them.

/// A time as `2026-11-30 21:17:33Z`.
///
/// # Source
/// The civil-from-days algorithm of the proleptic Gregorian calendar, era of 400 years.
pub fn utc(usec: i64) -> String {
    let seconds = usec.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March, so that the leap day is the last one.
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_date() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_827_696, "2000-02-29 12:34:56Z"),
            (1_796_073_453, "2026-11-30 21:17:33Z"),
            (-1, "1969-12-31 23:59:59Z"),
        ] {
            assert_eq!(utc(seconds * 1_000_000), text);
        }
    }
}
