//! Naming a contact: `{id}`, `{phone}` or `{email}` in bodies, the same words in queries.

use std::time::Duration;

use retoma_core::identity::{Identity, PhoneInput, read_phone};
use retoma_core::ids::ContactId;
use retoma_core::state::ContactView;
use retoma_store::{FindContact, Store};

use crate::fields::Fields;
use crate::problem::Problem;
use crate::state::AppState;

/// A contact as a caller names it.
#[derive(Clone, Debug)]
pub(crate) enum ContactRef {
    Id(ContactId),
    Identity(Identity),
}

impl ContactRef {
    /// Reads `{id}`, `{phone}` or `{email}`: the first that is there.
    pub(crate) fn of(fields: &Fields<'_>) -> Result<Option<Self>, Problem> {
        let (id, phone, email) = (fields.text("id")?, fields.text("phone")?, fields.text("email")?);
        Self::parse(id, phone, email)
    }

    /// The same from a query's parameters.
    pub(crate) fn parse(id: Option<&str>, phone: Option<&str>, email: Option<&str>) -> Result<Option<Self>, Problem> {
        if let Some(id) = id {
            return id.parse().map(|id| Some(Self::Id(id))).map_err(|_| Problem::invalid("id must be a contact's id"));
        }
        if let Some(phone) = phone {
            let identity = phone_identity(phone).ok_or_else(|| {
                Problem::invalid("phone cannot be read: write it with country and area code, like +5541999990001")
            })?;
            return Ok(Some(Self::Identity(identity)));
        }
        if let Some(email) = email {
            let identity = Identity::email(email).ok_or_else(|| Problem::invalid("email is no e-mail address"))?;
            return Ok(Some(Self::Identity(identity)));
        }
        Ok(None)
    }

    /// The contacts it may mean, best first.
    pub(crate) async fn find<S: Store>(&self, state: &AppState<S>) -> Result<Vec<ContactId>, Problem> {
        let find = match self {
            Self::Id(id) => FindContact::Id(*id),
            Self::Identity(identity) => FindContact::Identity(identity.clone()),
        };
        Ok(state.engine.store().find_contacts(state.tenant.clone(), find).await?)
    }
}

/// A phone as an operator types it. What has more than one reading is looked up as WhatsApp would spell it: looking up is
/// not writing, and a wrong guess finds nobody.
fn phone_identity(text: &str) -> Option<Identity> {
    if let Some(phone) = read_phone(&PhoneInput::text(text)).phone() {
        return Some(Identity::phone(phone, false));
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    Identity::from_jid(&format!("{digits}@s.whatsapp.net"))
}

/// How long an answer about a contact waits for what came in a moment before it.
const SETTLE_FOR: Duration = Duration::from_secs(2);

/// Everything known of one contact, once what came in for it a moment ago is decided: who asks right after a webhook wants
/// its effect, too. A chat message that waits for its burst to end is not waited for.
pub(crate) async fn view<S: Store>(state: &AppState<S>, id: ContactId) -> Result<ContactView, Problem> {
    let seen = load(state, id).await?;
    let soon = seen.undecided.iter().rev().find(|event| event.urgent || event.kind.bypasses_debounce());
    let Some(event) = soon.map(|event| event.id) else { return Ok(seen) };
    state.engine.decided(&state.tenant, event, SETTLE_FOR).await?;
    load(state, id).await
}

async fn load<S: Store>(state: &AppState<S>, id: ContactId) -> Result<ContactView, Problem> {
    let now = state.engine.clock().now();
    let views = state.engine.store().load_contacts(vec![(state.tenant.clone(), id)], now).await?;
    views.into_iter().next().ok_or_else(|| Problem::not_found("contact"))
}
