//! Phone numbers as buyers type them, as platforms split them, and as WhatsApp reports them.
//!
//! The rule above all others: nothing is guessed. A number is read only where its digits leave one reading; a short mobile
//! that may as well be a long one with a digit missing is *ambiguous*, and stays what it was. An unreadable phone never
//! blocks the event that carried it.
//!
//! Facts: reference/payment-webhooks.md 14 and reference/whatsapp-providers.md 4.

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod brazil;

/// A number that can be written to, in E.164 digits without `+`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Phone(String);

/// A phone as a source gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PhoneInput {
    /// In one piece, as typed.
    Text(String),
    /// In two fields: an area or country code, and the rest (or, as some platforms do, the whole number once more).
    Parts {
        /// `11`, `011`, `55`, `351`; anything longer is ignored.
        code: String,
        /// `90019-0019`.
        number: String,
    },
    /// Not given: a normal outcome.
    Missing,
}

/// What a phone turned out to be. `raw` is kept as evidence; `why` is a code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PhoneReading {
    /// One reading.
    Valid(Phone),
    /// More than one; not repaired.
    Ambiguous {
        /// As it came.
        raw: String,
        /// Why it has no single reading.
        why: &'static str,
    },
    /// None.
    Invalid {
        /// As it came.
        raw: String,
        /// Why it is no number.
        why: &'static str,
    },
    /// Nothing was given.
    Missing,
}

impl PhoneReading {
    /// The number, if there is one.
    pub fn phone(&self) -> Option<&Phone> {
        match self {
            PhoneReading::Valid(phone) => Some(phone),
            _ => None,
        }
    }

    /// What the event is flagged with: `phone_ambiguous`, `phone_invalid`, `phone_missing`.
    pub fn flag(&self) -> Option<&'static str> {
        match self {
            PhoneReading::Valid(_) => None,
            PhoneReading::Ambiguous { .. } => Some("phone_ambiguous"),
            PhoneReading::Invalid { .. } => Some("phone_invalid"),
            PhoneReading::Missing => Some("phone_missing"),
        }
    }
}

impl PhoneInput {
    /// A phone in one piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A phone in two fields.
    pub fn parts(code: impl Into<String>, number: impl Into<String>) -> Self {
        Self::Parts { code: code.into(), number: number.into() }
    }

    /// A phone as JSON holds it: text, a number, `{ddd, number}` or `{country_code, area_code, number}` under their usual
    /// names, or nothing (`null`, `{}`).
    pub fn from_json(value: &Value) -> Self {
        let Value::Object(fields) = value else { return plain(value).map_or(Self::Missing, Self::Text) };
        let field = |names: &[&str]| names.iter().find_map(|name| fields.get(*name).and_then(plain));
        let Some(number) = field(&["number", "numero", "phone", "phone_number", "phoneNumber"]) else {
            return Self::Missing;
        };
        let area = field(&["ddd", "area_code", "areaCode", "area", "code", "phone_local_code"]);
        match (field(&["ddi", "country_code", "countryCode"]), area) {
            // A country of its own leaves no doubt what the area code is.
            (Some(country), area) if !number.trim_start().starts_with('+') => {
                let country = country.trim().trim_start_matches(['+', '0']).to_owned();
                let area = area.unwrap_or_default();
                Self::Text(format!("+{country}{}{number}", area.trim().trim_start_matches('0')))
            }
            (_, Some(code)) => Self::Parts { code, number },
            (_, None) => Self::Text(number),
        }
    }
}

/// A text or number of JSON as text. Spreadsheets and automation tools hand numbers on as `5541999990001.0`.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").map(str::to_owned).unwrap_or(text))
        }
        _ => None,
    }
}

/// Reads a phone. Brazil is assumed only where no `+` stands and the length fits.
pub fn read_phone(input: &PhoneInput) -> PhoneReading {
    match input {
        PhoneInput::Missing => PhoneReading::Missing,
        PhoneInput::Text(text) if text.trim().is_empty() => PhoneReading::Missing,
        PhoneInput::Text(text) => reading(text.clone(), read_text(text)),
        PhoneInput::Parts { number, .. } if number.trim().is_empty() => PhoneReading::Missing,
        PhoneInput::Parts { code, number } => reading(format!("{code} {number}"), read_parts(code, number)),
    }
}

/// Why some digits are not one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    Invalid(&'static str),
    Ambiguous(&'static str),
}

fn reading(raw: String, read: Result<Phone, Doubt>) -> PhoneReading {
    match read {
        Ok(phone) => PhoneReading::Valid(phone),
        Err(Doubt::Invalid(why)) => PhoneReading::Invalid { raw, why },
        Err(Doubt::Ambiguous(why)) => PhoneReading::Ambiguous { raw, why },
    }
}

/// One piece of text: what is no digit is punctuation, except letters and `@`, which say that this is something else.
fn read_text(text: &str) -> Result<Phone, Doubt> {
    if text.chars().any(|c| c.is_alphabetic() || c == '@') {
        return Err(Doubt::Invalid("not_a_phone"));
    }
    let international = text.chars().find(|c| *c == '+' || c.is_ascii_digit()) == Some('+');
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match (international, digits.strip_prefix("55")) {
        (_, _) if digits.is_empty() => Err(Doubt::Invalid("no_digits")),
        (true, Some(national)) => brazil::read_international(national),
        (true, None) => read_foreign(&digits),
        (false, _) => brazil::read(&digits),
    }
}

/// Two fields. Platforms disagree whether the code is an area or a country, and whether the number repeats it, so the digit
/// count of both together decides.
fn read_parts(code: &str, number: &str) -> Result<Phone, Doubt> {
    let alone = read_text(number);
    let code: String = code.chars().filter(char::is_ascii_digit).collect();
    let code = code.trim_start_matches('0');
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let repeats = digits.starts_with(code) || digits.strip_prefix("55").is_some_and(|rest| rest.starts_with(code));
    if code.is_empty() || code.len() > 3 || number.trim_start().starts_with('+') || (repeats && alone.is_ok()) {
        return alone;
    }
    // No Brazilian area code has three digits: this one is a country's.
    let plus = if code.len() == 3 { "+" } else { "" };
    match (alone, read_text(&format!("{plus}{code}{number}"))) {
        // A country code from another field says nothing about a digit that may be missing in this one.
        (Err(doubt @ Doubt::Ambiguous(_)), Ok(_)) => Err(doubt),
        (_, joined) => joined,
    }
}

/// A number with a country code other than 55, by the numbering plan of that country.
fn read_foreign(digits: &str) -> Result<Phone, Doubt> {
    if !(8..=15).contains(&digits.len()) {
        return Err(Doubt::Invalid("length"));
    }
    // Mexico dropped the `1` after 52 in 2019; people still type it.
    let digits = without_old_mexican_one(digits);
    let unknown = Doubt::Invalid("not_a_number_of_its_country");
    let number = phonenumber::parse(None, format!("+{digits}")).map_err(|_| unknown)?;
    let written = number.format().mode(phonenumber::Mode::E164).to_string();
    let written = written.trim_start_matches('+');
    // A plan that reads other digits than were typed (a trunk zero, say) repaired the number, which is a guess.
    if number.is_valid() && written == digits { Ok(Phone(written.to_owned())) } else { Err(unknown) }
}

fn without_old_mexican_one(digits: &str) -> String {
    match digits.strip_prefix("521") {
        Some(rest) if rest.len() == 10 => format!("52{rest}"),
        _ => digits.to_owned(),
    }
}

impl Phone {
    /// A number as WhatsApp or another provider reports it: any 8 to 15 digits that do not start with 0, spelled as they
    /// are. The provider knows what is written to; numbering plans lag behind.
    pub fn reported(digits: &str) -> Option<Self> {
        let fits = (8..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        fits.then(|| Self(digits.to_owned()))
    }

    /// The digits, without `+`.
    pub fn e164_digits(&self) -> &str {
        &self.0
    }

    /// What identifies the line under any spelling: 55, area code and last eight digits for Brazilian mobiles, 52 and ten
    /// digits for Mexican numbers, else the digits themselves.
    ///
    /// Argentina has no entry: `54 9 ..` may be looked up as `54 ..`, but not the other way round, and a key has no
    /// direction.
    pub fn match_key(&self) -> String {
        brazil::mobile_line(&self.0)
            .map(|(area, line)| format!("55{area}{line}"))
            .unwrap_or_else(|| without_old_mexican_one(&self.0))
    }

    /// Every spelling that may stand for this line, the present one first. Only the provider knows which is the account.
    pub fn variants(&self) -> Vec<String> {
        let other = match brazil::mobile_line(&self.0) {
            Some((area, line)) if self.0.len() == 13 => Some(format!("55{area}{line}")),
            Some((area, line)) => Some(format!("55{area}9{line}")),
            None => match self.0.strip_prefix("521").filter(|rest| rest.len() == 10) {
                Some(rest) => Some(format!("52{rest}")),
                None => self.0.strip_prefix("52").filter(|rest| rest.len() == 10).map(|rest| format!("521{rest}")),
            },
        };
        std::iter::once(self.0.clone()).chain(other).collect()
    }

    /// The area code, for Brazilian numbers.
    pub fn brazilian_area(&self) -> Option<&str> {
        let national = self.0.strip_prefix("55").filter(|national| matches!(national.len(), 10 | 11))?;
        Some(&national[..2]).filter(|area| brazil::is_area_code(area))
    }
}

#[cfg(test)]
mod tests;
