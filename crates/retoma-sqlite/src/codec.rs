//! Between Rust values and columns. Times are cut to milliseconds on the way in, everywhere alike.

use jiff::Timestamp;
use retoma_core::ids::{ContactId, ConversationId, EventId};
use retoma_core::state::Conversation;
use rusqlite::Row;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::{Failure, Result};

pub(crate) fn ms(time: Timestamp) -> i64 {
    time.as_millisecond()
}

pub(crate) fn ms_or_null(time: Option<Timestamp>) -> Option<i64> {
    time.map(ms)
}

pub(crate) fn time(ms: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(ms).map_err(|_| Failure::Row(format!("time {ms}")))
}

pub(crate) fn time_at(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    time(row.get(column)?)
}

pub(crate) fn time_or_null_at(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?.map(time).transpose()
}

/// Cut to what the columns keep, so that a time in JSON still equals the same time in a column.
pub(crate) fn cut(time: &mut Timestamp) {
    if let Ok(ms) = Timestamp::from_millisecond(time.as_millisecond()) {
        *time = ms;
    }
}

/// A conversation with its times cut; see [`cut`].
pub(crate) fn cut_conversation(conversation: &Conversation) -> Conversation {
    let mut conversation = conversation.clone();
    cut(&mut conversation.opened_at);
    cut(&mut conversation.updated_at);
    conversation.deadline_at.iter_mut().for_each(cut);
    if let Some(cadence) = &mut conversation.cadence {
        cut(&mut cadence.anchor);
        cadence.touches.iter_mut().for_each(|touch| cut(&mut touch.due_at));
    }
    conversation
}

pub(crate) fn uuid(bytes: &[u8]) -> Result<Uuid> {
    Uuid::from_slice(bytes).map_err(|_| Failure::Row(format!("an id of {} bytes", bytes.len())))
}

pub(crate) fn uuid_at(row: &Row<'_>, column: usize) -> Result<Uuid> {
    uuid(row.get_ref(column)?.as_blob()?)
}

pub(crate) fn uuid_or_null_at(row: &Row<'_>, column: usize) -> Result<Option<Uuid>> {
    row.get_ref(column)?.as_blob_or_null()?.map(uuid).transpose()
}

pub(crate) fn event_at(row: &Row<'_>, column: usize) -> Result<EventId> {
    uuid_at(row, column).map(EventId)
}

pub(crate) fn contact_at(row: &Row<'_>, column: usize) -> Result<ContactId> {
    uuid_at(row, column).map(ContactId)
}

pub(crate) fn conversation_at(row: &Row<'_>, column: usize) -> Result<ConversationId> {
    uuid_at(row, column).map(ConversationId)
}

/// A name (tenant, source, channel, ..) without a `String` in between.
pub(crate) fn name_at<T: for<'a> From<&'a str>>(row: &Row<'_>, column: usize) -> Result<T> {
    Ok(T::from(row.get_ref(column)?.as_str()?))
}

pub(crate) fn name_or_null_at<T: for<'a> From<&'a str>>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    Ok(row.get_ref(column)?.as_str_or_null()?.map(T::from))
}

/// A word of one of the enums.
pub(crate) fn word_at<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    parse(word).ok_or_else(|| Failure::Row(format!("word {word:?}")))
}

pub(crate) fn word_or_null_at<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<Option<T>> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(word) => parse(word).map(Some).ok_or_else(|| Failure::Row(format!("word {word:?}"))),
        None => Ok(None),
    }
}

pub(crate) fn json_at<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str()?)?)
}

/// JSON in a column that is NULL where the value is the empty one.
pub(crate) fn json_or_default_at<T: DeserializeOwned + Default>(row: &Row<'_>, column: usize) -> Result<T> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(text) => Ok(serde_json::from_str(text)?),
        None => Ok(T::default()),
    }
}

pub(crate) fn kind(word: &str) -> Option<retoma_core::event::EventKind> {
    word.parse().ok()
}
