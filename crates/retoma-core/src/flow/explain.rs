//! What each code of `check` means, in a line and at length (`check --explain`).

/// Every code that reading and checking a flow may give: its meaning in a line, why it is one, and what to do.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "C1",
        "a cadence must be cancelled by payment.approved",
        "Whoever paid is never reminded. The check before sending would stop each touch, one at a time; a cadence that names the \
         payment in `cancel_on` is closed whole in the same commit, so that its plan is empty at once.\n\
         Write: cancel_on: [payment.approved, payment.refunded, payment.cancelled, payment.chargeback]\n\
         An opt-out closes every cadence by itself. A file that names it at one cadence and not at another is warned, since its \
         author may believe that the other one goes on.",
    ),
    (
        "C2",
        "there must be one way to ask for silence, in every state, for the whole person",
        "Asking for silence must work in every state and on every day. So there is one word for it: that of rules with \
         `opt_out: true`, or of the global row that sends a message of class optout_ack. It stands under `globals`, it counts for \
         the person and not for one sale, no model may propose it, and a single word counts only as the whole message \
         (\"cancelar\" inside a sentence may mean the order).",
    ),
    (
        "C3",
        "a pattern of a rule does not compile, is unbounded, or can never match",
        "Messages reach the rules folded: lower case, without accents, letters repeated once. A pattern with an accent therefore \
         never matches. One with `.*` joins words of different sentences, since a burst of messages is read as one text: write \
         `.{0,30}`. One that matches an empty message matches every message.",
    ),
    (
        "C4",
        "two rules of equal priority hit the same everyday sentence",
        "With equal priorities the first rule of the file wins, by accident. Give the word that matters more a higher priority. \
         `retoma classify FLOW \"texto\"` shows which rule wins.",
    ),
    (
        "C5",
        "text may not stand for what only the platform knows",
        "\"Já paguei\" is what somebody says, not what happened. Only the platform's event may lead to PAGO. Let the rule emit a \
         word of its own (ja_paguei) with a row that answers kindly, or calls a tool that looks the payment up.",
    ),
    (
        "C6",
        "a row arms a cadence that does not run in the state it leads to",
        "A cadence lives in the states of its `runs_in`; leaving them closes what is unsent. Armed by a row that leads elsewhere, \
         it would be closed in the same breath. One conversation runs one cadence, so a row arms one.",
    ),
    (
        "C7",
        "cadences or touches whose task ids would be the same",
        "A touch's task is named `prefix:transaction:touch`, and a name is used once for ever, so that a webhook told twice \
         promises nothing twice. Two cadences with one prefix, or two touches with one id, would swallow each other.",
    ),
    (
        "L1",
        "a circle that sends messages for ever, by the clock alone",
        "Following only `timeout`, `regua_esgotada` and what they arm, the flow comes back to the same state and sends again, \
         though nobody ever wrote. One step of the circle must lead to a state without a clock (PERDIDO).",
    ),
    (
        "L2",
        "answers that two robots could exchange for ever",
        "A row answers a message and leads, by answers alone, back to where it stood. If the other side is a robot too, they talk \
         for ever. `inbound: { bot_loop_guard: { most: { max: 20, per: 10m } } }` says when it ends; `max_times` at the row says it \
         for that row.",
    ),
    (
        "L3",
        "a cadence has more to say than the caps let through",
        "`limits.frequency` is rolling and counts all cadences of a person. A cadence that alone has more reminders within that \
         time loses the last of them, each avoided as frequency_cap.",
    ),
    (
        "M1",
        "live conversations stand in a state that the file no longer has",
        "They would be stranded: no row answers them. Say where each goes, in the file: `migrate: { OLD: NEW }`. Until then a \
         reload is refused and the running version stays. `check --against-running` counts them.",
    ),
    (
        "N1",
        "an unknown key or name",
        "Every key, state, word, message and cadence must resolve, since a slip of the pen is a message that never leaves. The \
         nearest known name is offered.",
    ),
    (
        "N2",
        "something that other YAML tools read differently",
        "YAML 1.1 tools take the keys on, off, yes, no, y, n for true and false, and 22:00 without quotes for the number 1320. \
         Your file will be opened in one of them. Write clock times in quotes (\"08:00-20:00\") and use other words for keys.",
    ),
    (
        "P1",
        "a request is given up before the provider can have sent it",
        "While the provider shows \"typing\" it has not answered yet. A time-out shorter than that plus the way there and back ends \
         every send as unknown, and unknown sends are never simply repeated.",
    ),
    (
        "Q1",
        "no hour of the week is open, or none that a touch can reach",
        "A reminder waits for the next open hour, at most its `max_late`. With a closed week none ever leaves; a touch that falls \
         due in closed hours on every weekday, and is too late when they end, never leaves either.",
    ),
    (
        "S1",
        "a state that nothing leads to",
        "No row, no deadline and no re-entry leads there from the initial state. Add a row with `to:`, or take the state out.",
    ),
    (
        "S2",
        "a state without a way out that is not final",
        "Every state that is not `final` needs a way on that does not depend on the customer: a `timeout` with a row that answers \
         it (or `timeout: { after: 48h, to: PERDIDO }`), or a cadence that runs there. Otherwise whoever falls silent there is \
         never looked at again. A state that the clock itself led to, such as PERDIDO, may wait.",
    ),
    (
        "S3",
        "not exactly one initial state, or a final state with a clock",
        "A new conversation needs one place to begin. In a final state nothing is promised any more, so neither a timeout nor a cadence may run there.",
    ),
    (
        "S4",
        "a row that an earlier row covers",
        "Globals are tried first, then the table in file order; the first row that matches wins. This one never gets its turn, or no clock runs where it waits for one.",
    ),
    (
        "S5",
        "something declared that nothing uses",
        "A word without a row, a cadence that nothing arms. Usually a row was forgotten or renamed.",
    ),
    (
        "T1",
        "a state's own deadline ends before a cadence that runs there",
        "The worst case of a cadence is its last touch plus jitter plus `max_late`. A deadline that leads out of the cadence's \
         states before that cuts it off. Where a cadence runs it is the clock; the state needs no `timeout` of its own.",
    ),
    (
        "T2",
        "jitter that is larger than half its delay, or that swaps touches",
        "Jitter spreads sends that would leave in one second. Larger than half the delay it changes what the delay means; larger than the distance to the next touch it swaps the two.",
    ),
    (
        "T3",
        "a touch may be so late that the next one overtakes it",
        "Two touches that wait for the same opening hour become one, the later. `when_piled_up: keep_latest` says that this is meant.",
    ),
    (
        "V1",
        "a message asks for a value that no source knows",
        "Values come from the person (contact.), the platform's event (offer., order., pix., checkout.) and the conversation \
         (previous.). A value of your own is declared under `vars`, with a `fallback` or `required: true` and, outside these \
         places, the `source` that gives it. Once a file has `vars`, it declares every value that it uses.",
    ),
    (
        "V2",
        "a touch sends a value that may be dead by then",
        "A PIX code lives minutes to hours. A touch hours later carries a dead code, or is avoided as perished. Write \
         `{% if pix.code %}..{% else %}{{ checkout.url }}{% endif %}`, let the touch count back from the expiry \
         (`before: pix.expires_at`), have it renewed by an `http` channel of yours (`vars: { pix.code: { perishable: pix.expires_at, \
         refresh: CHANNEL } }` and `refresh: [pix.code]` at the message), or say how long the value lives (`vars: { pix.code: { perishable: pix.expires_at, life: 24h } }`).",
    ),
    (
        "V3",
        "a link leads to a host that the file does not allow",
        "`allow_hosts` of a variable is the list of hosts that messages may lead to. A link written by hand to another host is a slip, or somebody else's page.",
    ),
    ("V4", "a message that nothing sends", "No row and no touch names it. Take it out, or name it."),
    (
        "V5",
        "a message's text is no template",
        "Every {{ }} and {% %} must be closed, and filters and tests must exist.",
    ),
    (
        "W1",
        "a touch may leave after the 24 h window is closed, without a template",
        "On official WhatsApp channels free text may leave only within 24 hours of the contact's last message. The worst case of a \
         touch is its time plus jitter plus `max_late`. Give its message a `template`, or say `window_closed: skip`.",
    ),
    (
        "W2",
        "a touch counts from what is no message, so the window may be closed, without a template",
        "Whoever came straight from the checkout never wrote: no window is open. Only a template reaches them. Give the message a \
         `template`, or say `window_closed: skip` at the channel.",
    ),
    (
        "W3",
        "a template is missing at the provider, not approved, in another language, or takes other values",
        "`check --online` asks the provider for the templates of the account and compares name, language, status and the number of \
         values. A template that is not approved is refused when it is needed, hours later.",
    ),
    (
        "W4",
        "a utility template with words that sell",
        "The provider reads templates. One called utility whose text has discounts or urgency in it is reclassified or refused, and the account loses quality.",
    ),
    (
        "X1",
        "a scenario of the file fails",
        "The scenarios under `tests` are played on a virtual clock at every check. `retoma test` shows the whole story of the one that failed.",
    ),
    (
        "Y1",
        "the file is not readable YAML",
        "The line named is where reading stopped; the mistake often stands in the line before it.",
    ),
    (
        "Y2",
        "a missing key, or a value of the wrong kind",
        "The finding says what is wanted. Durations are 30s, 15m, 4h, 2d; hours \"08:00-20:00\".",
    ),
    (
        "Y3",
        "something that is understood and has no effect",
        "The key belongs to the format and this version does not act on it, or another key decides. It is said so that nobody relies on it.",
    ),
];

/// Every code with its meaning in a line.
pub const CODES: &[(&str, &str)] = &short();

const fn short() -> [(&'static str, &'static str); TABLE.len()] {
    let mut codes = [("", ""); TABLE.len()];
    let mut place = 0;
    while place < TABLE.len() {
        codes[place] = (TABLE[place].0, TABLE[place].1);
        place += 1;
    }
    codes
}

/// What a code means: in a line, and at length.
pub fn explain(code: &str) -> Option<(&'static str, &'static str)> {
    let found = TABLE.iter().find(|(known, ..)| known.eq_ignore_ascii_case(code));
    found.map(|(_, short, long)| (*short, *long))
}

#[cfg(test)]
mod tests {
    use super::*;

    // C15
    #[test]
    fn every_code_is_explained_once_in_order_and_at_length() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0), "sorted, each once");
        for (code, short, long) in TABLE {
            assert!(short.len() > 10 && long.len() > short.len(), "{code}");
            assert_eq!(explain(&code.to_lowercase()), Some((*short, *long)));
        }
        assert_eq!(explain("Z9"), None);
    }
}
