//! The table of reference 2.6. First fit wins; a test has a case for each row.

use retoma_core::outcome::Outcome;

/// What `response.message` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// A plain string: thrown before the send step.
    Text,
    /// An array of strings: thrown inside it, or a validation.
    List,
    /// An array of arrays: the schema's complaints.
    Nested,
    /// An array of objects: numbers that do not exist.
    Objects,
    /// Anything else, or nothing.
    Other,
}

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    statuses: &'static [u16],
    /// `None` fits every shape.
    shape: Option<Shape>,
    /// One of these stands in the message; empty fits everything.
    says: &'static [&'static str],
    pub(super) outcome: Outcome,
    /// A sentence for people; no two rows share one.
    pub(super) error: &'static str,
}

impl Row {
    pub(super) fn fits(&self, status: u16, shape: Shape, said: &str) -> bool {
        self.statuses.contains(&status)
            && self.shape.is_none_or(|wanted| wanted == shape)
            && (self.says.is_empty() || self.says.iter().any(|text| said.contains(text)))
    }
}

/// What no row knows: it may have been sent.
pub(super) const UNKNOWN: Row = Row {
    statuses: &[],
    shape: None,
    says: &[],
    outcome: Outcome::Ambiguous,
    error: "an answer that nobody knows: it may have been sent",
};

macro_rules! rows {
    ($($statuses:expr, $shape:expr, $says:expr => $outcome:ident, $error:literal;)*) => {
        /// Every row, in the order in which they are tried.
        pub(super) const ROWS: &[Row] = &[$(Row {
            statuses: &$statuses,
            shape: $shape,
            says: &$says,
            outcome: Outcome::$outcome,
            error: $error,
        },)*];
    };
}

rows! {
    [400], Some(Shape::Nested), [] => Content, "the request is not valid";
    [400], Some(Shape::List), ["requires property", "is not of a type(s)"] =>
        Content, "the request is not valid, says another version";
    [400], Some(Shape::List), ["Text is required"] => Content, "the text is empty";
    [400], Some(Shape::Objects), ["\"exists\":false"] => Recipient, "the number is not on WhatsApp";
    [400], Some(Shape::List), ["[object Object]"] => Recipient, "the group is unknown";
    [400], Some(Shape::List), ["reading 'sendMessage'", "reading 'presenceSubscribe'"] =>
        Transient, "the instance is not started, found while sending";
    [400], Some(Shape::List), ["Connection Closed"] =>
        Ambiguous, "the connection to WhatsApp closed while sending";
    [400], Some(Shape::List), ["Timed Out"] =>
        Ambiguous, "WhatsApp did not confirm the send in time";
    [400], Some(Shape::List), ["message.create()", "PrismaClient"] =>
        Ambiguous, "the provider could not store the message: it almost surely went out";
    [400], None, [] => Ambiguous, "a 400 that may have come after the send";

    [401, 403], None, [] => Credentials, "the apikey is refused";
    [404], None, ["instance does not exist"] => Credentials, "the instance does not exist";
    [404], None, ["Cannot POST"] => Credentials, "base_url is no Evolution API";
    // Not Evolution's: a proxy whose backend is being replaced. Nothing was sent.
    [404], None, [] => Transient, "404 from something in between";
    [413, 414], None, [] => Content, "the message is too large";
    [429], None, [] => RateNumber, "too many requests";

    // Thrown by the check whether the number exists, which stands before the send.
    [500], Some(Shape::Text), ["Connection Closed"] =>
        Transient, "the instance has no connection to WhatsApp";
    [500], Some(Shape::Text), ["reading 'onWhatsApp'", "reading 'textMessage'"] =>
        Transient, "the instance is not started";
    [500], Some(Shape::Text), ["contact.findMany", "isOnWhatsapp"] =>
        Transient, "the provider's database failed before the send";
    [500], None, ["Timed Out"] => Ambiguous, "WhatsApp did not confirm in time";
    [500], None, [] => Ambiguous, "a 500 that may have come after the send";
    [502, 503, 504], None, [] => Ambiguous, "a proxy lost the answer";
}
