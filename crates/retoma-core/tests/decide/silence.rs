//! Opt-out and opt-in (C12, FC-58).

use super::*;

/// FC-58, C12: contact-wide, over all cycles, one confirmation.
#[test]
fn an_opt_out_closes_every_cycle_and_confirms_once() {
    for text in
        ["SAIR", " sair ", "Sair.", "PARAR", "stop", "quero sair da lista", "pare de mandar mensagem", "descadastrar"]
    {
        let mut case = Case::vendas();
        case.fact(EventKind::PixCreated, "HP1", "curso");
        case.fact(EventKind::PixCreated, "HP2", "mentoria");
        let decision = case.say(text);
        assert_eq!(case.let_go(&decision), ["confirmar_saida"], "{text}");
        assert_eq!(case.view.contact.opted_out_at, Some(case.now));
        assert_eq!(case.state(), "OPT_OUT");
        let waiting: Vec<MessageClass> = case.waiting().iter().map(|task| task.class).collect();
        assert_eq!(waiting, [MessageClass::OptOutAck], "{text}");
        assert!(case.view.conversations.iter().all(|cycle| cycle.deadline_at.is_none() && cycle.cadence.is_none()));
        // Asked again before the confirmation left: it stays, and is not doubled.
        let again = case.say(text);
        assert_eq!((ids(&again).len(), case.waiting().len()), (0, 1), "{text}");
        assert_eq!(reason(&case.say("alguém aí?")), Some("no_transition"));
        assert_eq!(case.waiting().len(), 1);
    }
}

#[test]
fn a_sentence_about_leaving_is_no_opt_out() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO").say("não quero sair do grupo, obrigado");
    assert_eq!((case.state(), case.view.contact.opted_out_at), ("ENGAJADO", None));
}

/// C12: after an opt-out what is paid is still delivered, and nothing is armed.
#[test]
fn somebody_who_opted_out_gets_what_was_paid_and_no_reminder() {
    let mut case = Case::vendas();
    case.walk_to("OPT_OUT");
    let pix = case.fact(EventKind::PixCreated, "HP1", "curso");
    assert_eq!((ids(&pix).len(), case.cycle().deadline_at), (0, None));
    let other = case.fact(EventKind::PaymentRefused, "HP5", "mentoria");
    assert_eq!((ids(&other).len(), case.cycle().deadline_at), (0, None));
    let paid = case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!(ids(&paid), ["hotmart:entregar_acesso:HP1"]);
}

/// C12: `VOLTAR` closes the OPT_OUT cycle, and that message opens a new one in NOVO.
#[test]
fn voltar_opens_a_new_cycle_and_is_greeted() {
    let mut case = Case::vendas();
    case.walk_to("OPT_OUT");
    let closed = case.cycle().id;
    let decision = case.wait(HOUR).say("VOLTAR");
    assert_eq!(case.view.contact.opted_out_at, None);
    assert_eq!(case.let_go(&decision), ["boas_vindas"]);
    assert_eq!((case.view.conversations.len(), case.state()), (1, "ENGAJADO"));
    assert_ne!(case.cycle().id, closed);
    assert_eq!(case.cycle().id, ConversationId::derive(case.view.contact.id, 2));
    let row = decision.transitions.last().unwrap();
    assert_eq!((row.event.as_str(), row.taken_as.as_deref()), ("voltar", Some("msg_recebida")));
    // And may ask for silence again, with a confirmation of its own.
    let again = case.say("sair");
    assert_eq!(case.let_go(&again), ["boas_vindas", "confirmar_saida"][1..]);
}

#[test]
fn voltar_of_somebody_who_is_here_is_just_a_message() {
    let mut case = Case::vendas();
    let decision = case.walk_to("ENGAJADO").say("voltar");
    assert_eq!((case.state(), case.let_go(&decision)), ("ENGAJADO", vec!["responder_duvida".to_owned()]));
    // Taken back in the same breath, an opt-out is none.
    let decision = case.burst(&["sair", "voltar"]);
    assert_eq!(case.view.contact.opted_out_at, None);
    assert_eq!(case.let_go(&decision), ["responder_duvida"]);
    case.burst(&["voltar", "sair"]);
    assert_eq!(case.state(), "OPT_OUT");
}

/// FC-58: a sentence that may have meant it is answered as usual, and flagged for a person.
#[test]
fn a_sentence_that_may_ask_for_silence_is_flagged() {
    let mut case = Case::vendas();
    let decision = case.say("não quero sair do grupo, obrigado");
    assert_eq!((ids(&decision).len(), case.state()), (1, "ENGAJADO"));
    assert_eq!(decision.transitions[0].reason.as_deref(), Some("maybe_opt_out"));
    assert_eq!(case.cycle().previous.reason, None, "no customer is greeted with it");
    assert_eq!(case.view.contact.opted_out_at, None);
}
