//! What a fake provider delivered: in memory for whoever runs it, and, if asked for, as lines of JSON in a file. A line is in
//! the file before the request that caused it is answered, so that it survives whatever happens to the tested process.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use retoma_providers::evolution::fake::Delivered;
use serde::{Deserialize, Serialize};

/// One message that reached a (pretended) phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// When, by the fake's clock.
    pub at: Timestamp,
    /// To whom, as the sender wrote it.
    pub number: String,
    /// The text.
    pub text: String,
    /// The id that the provider gave it.
    pub id: String,
}

impl From<Delivered> for Delivery {
    fn from(delivered: Delivered) -> Self {
        let Delivered { at, to, text, id } = delivered;
        Self { at, number: to, text, id }
    }
}

/// A handle on the log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeliveryLog(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    deliveries: Vec<Delivery>,
    file: Option<File>,
}

impl DeliveryLog {
    /// An empty log; lines go to the end of `path` where one is given.
    pub fn new(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        Ok(Self(Arc::new(Mutex::new(Inner { deliveries: Vec::new(), file }))))
    }

    /// Takes note of a delivery. The line is handed to the system when this returns: it survives the end of any process.
    pub(crate) fn add(&self, delivery: Delivery) -> io::Result<()> {
        let mut inner = self.lock();
        if let Some(file) = &mut inner.file {
            let mut line = serde_json::to_vec(&delivery)?;
            line.push(b'\n');
            // One write: a line is there whole or not at all, whoever reads along.
            file.write_all(&line)?;
        }
        inner.deliveries.push(delivery);
        Ok(())
    }

    /// Everything delivered so far, in order.
    pub fn all(&self) -> Vec<Delivery> {
        self.lock().deliveries.clone()
    }

    /// How much was delivered so far.
    pub fn len(&self) -> usize {
        self.lock().deliveries.len()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("no code panics while it holds the log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_in_the_file_as_soon_as_it_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let log = DeliveryLog::new(Some(&path)).unwrap();
        let delivery = |id: &str| Delivery {
            at: Timestamp::from_second(1_790_000_000).unwrap(),
            number: "5541999990001".into(),
            text: "Oi\nAna".into(),
            id: id.into(),
        };
        log.add(delivery("A")).unwrap();
        log.add(delivery("B")).unwrap();
        let read: Vec<Delivery> =
            std::fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, [delivery("A"), delivery("B")]);
        assert_eq!(log.all(), read);
    }
}
