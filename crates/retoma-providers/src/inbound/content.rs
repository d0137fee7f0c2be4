//! What a chat message says, whichever provider brought it.

use super::Part;

/// What stands in a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Somebody said something.
    Said {
        /// `text`, `image`, `audio`, `button`, ...
        kind: String,
        /// Its text, caption or the label that was tapped.
        text: Option<&'a str>,
        /// The id behind a tapped label.
        choice: Option<&'a str>,
    },
    /// Nothing that anybody should answer.
    Nothing {
        /// Why.
        reason: &'static str,
    },
}

/// Writes what was said into a part.
pub(crate) fn describe(part: &mut Part, content: &Content<'_>) {
    match content {
        Content::Said { kind, text, choice } => {
            part.set_var("message.type", Some(kind.clone()));
            part.set_var("message.choice", choice.map(str::to_owned));
            if let Some(text) = text {
                part.set_text(text);
            }
        }
        Content::Nothing { .. } => {}
    }
}
