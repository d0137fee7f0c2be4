//! Who else writes in the chat: a person of the seller's, an echo of ours, another robot (C8, C10, FC-10, FC-12, FC-13).

use retoma_core::event::Event;
use retoma_core::flow::Flow;
use retoma_core::state::SendMark;

use super::*;

/// A message from our own number.
fn own(case: &mut Case, id: &str, text: &str) -> Event {
    let (message_id, text) = (Some(id.to_owned()), Some(text.to_owned()));
    case.event(EventKind::MessageHuman, EventData { message_id, text, ..EventData::default() })
}

/// FC-13: recorded, no word of the contact's, and automatic messages wait from then on.
#[test]
fn whoever_answers_from_the_phone_silences_the_bot() {
    let mut case = Case::vendas();
    case.walk_to("AGUARDANDO_PIX");
    let before = case.cycle().clone();
    let message = own(&mut case, "OWN1", "Oi, aqui é a vendedora");
    let decision = case.decide(&[message]);
    assert_eq!((ids(&decision), decision.events[0].decided), (Vec::new(), true));
    assert_eq!(case.view.contact.paused_until, Some(case.now + 4 * HOUR));
    assert_eq!(case.view.contact.last_inbound_at, None, "it opens no window");
    assert_eq!(case.cycle(), &before, "state and clock move as usual");
    // Each word counts anew, and the contact's own words change nothing about it.
    case.wait(HOUR).say("oi");
    let message = own(&mut case, "OWN2", "posso ajudar?");
    case.decide(&[message]);
    assert_eq!(case.view.contact.paused_until, Some(case.now + 4 * HOUR));
    // An operator's longer pause is not shortened.
    let until = case.now + 24 * HOUR;
    case.operator(EventKind::OperatorPause, Operator { until: Some(until), ..command("ana") });
    let message = own(&mut case, "OWN3", "já volto");
    case.decide(&[message]);
    assert_eq!(case.view.contact.paused_until, Some(until));
}

/// C8: also with no conversation open.
#[test]
fn a_takeover_needs_no_cycle() {
    let mut case = Case::vendas();
    let message = own(&mut case, "OWN1", "Oi, vi que você passou na loja");
    case.decide(&[message]);
    assert_eq!((case.view.conversations.len(), case.view.contact.paused_until.is_some()), (0, true));
}

/// FC-24: what was written long ago and comes again after a reconnect pauses nothing.
#[test]
fn old_words_of_ours_pause_nothing() {
    let mut case = Case::vendas();
    let message = own(&mut case, "OWN1", "oi");
    let old = Event { occurred_at: case.now - 5 * HOUR, ..message };
    assert_eq!(reason(&case.decide(&[old])), Some("history"));
    assert_eq!(case.view.contact.paused_until, None);
}

/// FC-10: our own send comes back, known by its id or, before the provider has answered, by its text.
#[test]
fn an_echo_is_no_takeover() {
    let mut case = Case::vendas();
    case.say("oi");
    let text = retoma_core::compose::compose(&case.flow, &case.view, &case.view.tasks[0], case.now).text.unwrap();
    for status in [TaskStatus::Sending, TaskStatus::Unsure] {
        case.view.tasks[0].status = status;
        let echo = own(&mut case, "BAE5TEST10", &format!("  {}\n", text.replace('\n', "\r\n")));
        assert_eq!(reason(&case.clone().decide(std::slice::from_ref(&echo))), Some("own_echo"), "{status}");
        let other = own(&mut case, "OWN1", "outra coisa");
        assert_eq!(reason(&case.clone().decide(&[other])), None, "{status}: somebody typed meanwhile");
    }
    case.view.tasks[0].status = TaskStatus::Sent;
    let echo = own(&mut case, "BAE5TEST10", &text);
    assert_eq!(reason(&case.clone().decide(std::slice::from_ref(&echo))), None, "nothing says that it is ours");
    case.view.echoes = vec!["BAE5TEST10".to_owned()];
    assert_eq!(reason(&case.decide(&[echo])), Some("own_echo"));
    assert_eq!(case.view.contact.paused_until, None);
}

/// What the contact says so many milliseconds after a message of ours has started.
fn answers(case: &mut Case, after: u64, text: &str) -> Decision {
    let (now, handed) = (case.now, case.deliver());
    if !handed.is_empty() {
        case.view.sends.push(SendMark { at: now, class: MessageClass::Reply, receipt: None });
    }
    case.wait(std::time::Duration::from_millis(after)).say(text)
}

/// C10: "Two bots answering each other end on the second turn."
#[test]
fn an_auto_reply_gets_one_answer() {
    let mut case = Case::vendas();
    let text = "Olá! Nosso horário é das 8h às 18h.";
    assert_eq!(ids(&case.say(text)).len(), 1);
    let decision = answers(&mut case, 800, text);
    assert_eq!((ids(&decision), reason(&decision)), (Vec::new(), Some("bot_loop")));
    assert_eq!(case.log.last().unwrap().reason.as_deref(), Some("bot_loop"), "on record");
    // A reminder that goes out later is answered by the robot, too; that ends there.
    case.ring();
    let decision = answers(&mut case, 800, text);
    assert_eq!((ids(&decision), reason(&decision)), (Vec::new(), Some("bot_loop")));
}

/// FC-12: varied words do not help, nor does patience.
#[test]
fn a_longer_ping_pong_ends_in_a_pause() {
    for (after, same) in [(800, false), (20_000, true)] {
        let mut case = Case::vendas();
        case.say("oi");
        let mut answered = 1;
        for turn in 0..30 {
            let text = if same { "Digite 1 para vendas".to_owned() } else { format!("Opção {turn} inválida") };
            answered += ids(&answers(&mut case, after, &text)).len();
            if case.view.contact.paused_until.is_some() {
                break;
            }
        }
        assert!(answered <= 6, "{answered} answers");
        assert!(case.view.contact.paused_until.is_some_and(|until| until > case.now), "automation stops");
    }
}

/// A person may repeat words, and be quick, and is answered.
#[test]
fn a_person_is_no_robot() {
    let mut case = Case::vendas();
    for text in ["oi", "oi", "quanto custa?", "tá caro", "quero comprar"] {
        let decision = answers(&mut case, 12_000, text);
        assert_eq!(ids(&decision).len(), 1, "{text}");
    }
    let quick = answers(&mut case, 900, "ok");
    assert_eq!(ids(&quick).len(), 1, "once is no loop");
}

/// A flow whose rows call a tool and tell a person.
fn with_tools() -> Case {
    let text = "
flow: f
schema: 1
events: { msg: message.received, pago: payment.approved }
classifier: { rules: [{ emit: parar, opt_out: true, match: whole, any: [sair] }] }
takeover: { auto_end: 30m, notify: dono }
states: { NOVO: { initial: true }, FIM: { final: true } }
globals:
  - { event: pago, to: FIM, do: [send: entrega, call: n8n] }
  - { event: parar, to: FIM, do: [send: tchau] }
transitions:
  - { from: NOVO, event: msg, to: NOVO, do: [call: n8n, notify: dono] }
  - { from: NOVO, event: pago, to: FIM }
messages:
  tchau: { class: optout_ack, text: \"Ok.\" }
  entrega: { class: receipt, text: \"Aqui está.\" }
";
    Case::of(Flow::parse(text, "f.yaml").expect("a good flow"))
}

/// C13: a call carries the words to the tool; both are tasks to their own channel and never to the contact.
#[test]
fn calls_and_notes_are_tasks_of_their_own_class() {
    let mut case = with_tools();
    let decision = case.say("quanto custa?");
    let shown: Vec<_> = decision.new_tasks.iter().map(|task| (task.kind, task.class, task.channel.as_str())).collect();
    let internal = MessageClass::Internal;
    assert_eq!(shown, [(TaskKind::Call, internal, "n8n"), (TaskKind::Notify, internal, "dono")]);
    assert_eq!(decision.new_tasks[0].text.as_deref(), Some("quanto custa?"));
    assert_eq!(ids(&case.say("e aí?")).len(), 2, "another message is another call");
    // The fact told twice calls once; its own words are none.
    let paid = case.fact(EventKind::PaymentApproved, "HP1", "curso");
    let expected = ["hotmart:entrega:HP1", "hotmart:payment.approved:call:n8n:HP1"];
    assert_eq!(ids(&paid), expected);
    assert!(case.waiting().iter().all(|task| task.class != MessageClass::Reminder));
}

/// C8: whom the flow names is told that somebody took over, once.
#[test]
fn a_takeover_is_told() {
    let mut case = with_tools();
    let message = own(&mut case, "OWN1", "oi");
    let decision = case.decide(&[message]);
    assert_eq!((decision.new_tasks[0].kind, decision.new_tasks[0].channel.as_str()), (TaskKind::Notify, "dono"));
    assert_eq!(case.view.contact.paused_until, Some(case.now + 30 * MINUTE));
    let again = own(&mut case, "OWN2", "tudo bem?");
    assert_eq!(ids(&case.decide(&[again])), [""; 0]);
}

/// C11: of the contacts that a payment reaches, one gets what was paid.
#[test]
fn what_is_delivered_elsewhere_is_not_delivered_here() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    let mut event = case.fact_event(EventKind::PaymentApproved, "HP9", "curso");
    event.data.delivered_elsewhere = true;
    let decision = case.decide(&[event]);
    assert_eq!((ids(&decision), case.state(), case.waiting().len()), (Vec::new(), "PAGO", 0));
    assert_eq!(decision.transitions[0].reason.as_deref(), Some("delivered_elsewhere"));
}

/// FC-24: messages of long ago get no answer; that the contact replied ends the touches that were waiting for it. What is fresh in
/// the same burst is answered, and a wish for silence counts however old.
#[test]
fn words_of_long_ago_are_heard_and_not_answered() {
    let old = |case: &mut Case, text: &str, hours: u32| {
        let flags = vec!["history".to_owned()];
        let event = case.event(
            EventKind::MessageReceived,
            EventData { text: Some(text.to_owned()), flags, ..EventData::default() },
        );
        Event { occurred_at: case.now - hours * HOUR, ..event }
    };
    let mut case = Case::vendas();
    let message = old(&mut case, "oi", 26);
    let decision = case.decide(&[message]);
    assert_eq!((ids(&decision).len(), reason(&decision), case.view.conversations.len()), (0, Some("history"), 0));
    // Before the cadence began it says nothing about it; after, it is its answer.
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.wait(2 * HOUR);
    let before = old(&mut case, "oi", 3);
    case.decide(&[before]);
    assert_eq!(touches(&case), ["t15 scheduled", "t4h scheduled", "t20h scheduled"]);
    let (during, fresh) = (
        old(&mut case, "já vou pagar", 1),
        case.event(EventKind::MessageReceived, EventData { text: Some("oi?".to_owned()), ..EventData::default() }),
    );
    let mut both = case.clone();
    assert_eq!(case.decide(std::slice::from_ref(&during)).new_tasks.len(), 0);
    assert_eq!(touches(&case), ["t15 superseded", "t4h superseded", "t20h superseded"]);
    assert_eq!(both.let_go(&both.clone().decide(&[during, fresh])), ["reenviar_pix"]);
    let stop = old(&mut both, "SAIR", 1);
    both.decide(&[stop]);
    assert!(both.view.contact.opted_out_at.is_some());
}
