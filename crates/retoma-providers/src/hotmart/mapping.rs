//! Hotmart's events in the words of A8.
//!
//! Driven by `event`; `purchase.status` differs between the documentation and what is sent, and is a hint at most.

use retoma_core::event::EventKind;

/// What the mapping looks at.
pub(super) struct Facts<'a> {
    /// `PURCHASE_APPROVED`, ...
    pub(super) event: &'a str,
    /// `purchase.status`.
    pub(super) status: &'a str,
    /// `purchase.payment.type`.
    pub(super) payment: &'a str,
    /// Whether `purchase.payment.refusal_reason` says something.
    pub(super) refused: bool,
    /// `purchase.recurrence_number`; 1 where there is none.
    pub(super) recurrence: u64,
}

/// The canonical type. `Unknown` is recorded and decides nothing.
pub(super) fn kind(facts: &Facts<'_>) -> EventKind {
    let by_method = |pix, boleto, other| match facts.payment {
        "PIX" => pix,
        "BILLET" | "FINANCED_BILLET" => boleto,
        _ => other,
    };
    match facts.event {
        // PIX codes come under the boleto's event.
        "PURCHASE_BILLET_PRINTED" => {
            by_method(EventKind::PixCreated, EventKind::BoletoCreated, EventKind::CheckoutCreated)
        }
        "PURCHASE_APPROVED" if facts.recurrence > 1 => EventKind::SubscriptionRenewed,
        "PURCHASE_APPROVED" => EventKind::PaymentApproved,
        "PURCHASE_COMPLETE" => EventKind::OrderCompleted,
        // A refused card has no event of its own: it is cancelled within seconds, with the bank's reason.
        "PURCHASE_CANCELED" if facts.refused || facts.payment == "CREDIT_CARD" => EventKind::PaymentRefused,
        "PURCHASE_CANCELED" => {
            by_method(EventKind::PaymentExpired, EventKind::PaymentExpired, EventKind::PaymentCancelled)
        }
        "PURCHASE_DELAYED" if facts.recurrence > 1 => EventKind::SubscriptionLate,
        "PURCHASE_DELAYED" => EventKind::PaymentOverdue,
        "PURCHASE_EXPIRED" => EventKind::PaymentExpired,
        "PURCHASE_PROTEST" => EventKind::PaymentRefundRequested,
        "PURCHASE_REFUNDED" if facts.status == "PARTIALLY_REFUNDED" => EventKind::PaymentPartiallyRefunded,
        "PURCHASE_REFUNDED" => EventKind::PaymentRefunded,
        "PURCHASE_CHARGEBACK" => EventKind::PaymentChargeback,
        "PURCHASE_OUT_OF_SHOPPING_CART" => EventKind::CheckoutAbandoned,
        "SUBSCRIPTION_CANCELLATION" => EventKind::SubscriptionCancelled,
        _ => EventKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_reference_has_its_canonical_type() {
        // event, status, payment type, refused, recurrence
        let cases = [
            ("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", "PIX", false, 1, "pix.created"),
            ("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", "PIX", false, 3, "pix.created"),
            ("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", "BILLET", false, 1, "boleto.created"),
            ("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", "WALLET", false, 1, "checkout.created"),
            ("PURCHASE_APPROVED", "APPROVED", "PIX", false, 1, "payment.approved"),
            ("PURCHASE_APPROVED", "APPROVED", "CREDIT_CARD", false, 2, "subscription.renewed"),
            ("PURCHASE_COMPLETE", "COMPLETED", "PIX", false, 1, "order.completed"),
            ("PURCHASE_CANCELED", "CANCELED", "CREDIT_CARD", true, 1, "payment.refused"),
            ("PURCHASE_CANCELED", "CANCELED", "CREDIT_CARD", false, 1, "payment.refused"),
            ("PURCHASE_CANCELED", "CANCELED", "PAYPAL", true, 1, "payment.refused"),
            ("PURCHASE_CANCELED", "CANCELED", "PIX", false, 1, "payment.expired"),
            ("PURCHASE_CANCELED", "CANCELED", "BILLET", false, 1, "payment.expired"),
            ("PURCHASE_CANCELED", "CANCELED", "PAYPAL", false, 1, "payment.cancelled"),
            ("PURCHASE_CANCELED", "CANCELED", "", false, 1, "payment.cancelled"),
            ("PURCHASE_DELAYED", "DELAYED", "CREDIT_CARD", true, 4, "subscription.late"),
            ("PURCHASE_DELAYED", "DELAYED", "BILLET", false, 1, "payment.overdue"),
            ("PURCHASE_EXPIRED", "EXPIRED", "PIX", false, 1, "payment.expired"),
            ("PURCHASE_PROTEST", "DISPUTE", "PIX", false, 1, "payment.refund_requested"),
            ("PURCHASE_REFUNDED", "REFUNDED", "PIX", false, 1, "payment.refunded"),
            ("PURCHASE_REFUNDED", "PARTIALLY_REFUNDED", "PIX", false, 1, "payment.partially_refunded"),
            ("PURCHASE_CHARGEBACK", "CHARGEBACK", "CREDIT_CARD", false, 1, "payment.chargeback"),
            ("PURCHASE_OUT_OF_SHOPPING_CART", "", "", false, 1, "checkout.abandoned"),
            ("SUBSCRIPTION_CANCELLATION", "", "", false, 1, "subscription.cancelled"),
            ("SWITCH_PLAN", "", "", false, 1, "unknown"),
            ("UPDATE_SUBSCRIPTION_CHARGE_DATE", "", "", false, 1, "unknown"),
            ("CLUB_FIRST_ACCESS", "", "", false, 1, "unknown"),
            ("CLUB_MODULE_COMPLETED", "", "", false, 1, "unknown"),
            ("ORDER_FULFILLMENT", "", "", false, 1, "unknown"),
            ("ALGO_NOVO", "", "", false, 1, "unknown"),
        ];
        for (event, status, payment, refused, recurrence, expected) in cases {
            let found = kind(&Facts { event, status, payment, refused, recurrence });
            assert_eq!(found.as_str(), expected, "{event} {payment} {recurrence}");
        }
    }
}
