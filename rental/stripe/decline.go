package stripe

import (
	"cmp"
	"encoding/json"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// hard are the refusals after which the same card is not tried again: the card is gone or was never
// one, its owner forbade it, or the issuer says so (https://docs.stripe.com/declines/codes, and the
// codes that Stripe itself never retries:
// https://docs.stripe.com/billing/revenue-recovery/smart-retries). Trying again anyway costs fees
// of the card networks.
var hard = map[string]bool{
	"do_not_try_again":                 true,
	"fraudulent":                       true,
	"highest_risk_level":               true,
	"incorrect_number":                 true,
	"invalid_account":                  true,
	"invalid_number":                   true,
	"lost_card":                        true,
	"merchant_blacklist":               true,
	"pickup_card":                      true,
	"restricted_card":                  true,
	"revocation_of_all_authorizations": true,
	"revocation_of_authorization":      true,
	"security_violation":               true,
	"stolen_card":                      true,
	"stop_payment_order":               true,
	"transaction_not_allowed":          true,
}

// adviceNever is the advice of issuers that takes the place of some of the codes
// (https://docs.stripe.com/declines/card#retrying-issuer-declines).
const adviceNever = "do_not_try_again"

// acts are the refusals that end where the card's owner confirms.
var acts = map[string]bool{
	"authentication_required":               true,
	"payment_intent_authentication_failure": true, // was asked, and did not
}

func declineOf(e *api.Error, advice string) *rental.Decline {
	code := cmp.Or(string(e.DeclineCode), string(e.Code), "unknown")
	return &rental.Decline{
		Code:    code,
		Message: cmp.Or(e.Msg, "Your card was declined."),
		Hard:    hard[code] || advice == adviceNever,
		Action:  acts[string(e.Code)] || acts[code],
	}
}

// goneCard is the refusal of a card that the processor does not hold, or not any more.
func goneCard() *rental.Decline {
	return &rental.Decline{Code: "payment_method_unusable", Hard: true, Message: "The payment processor does not hold this card any more."}
}

// advised are the places of an issuer's advice in an answer. The library does not read it.
type advised struct {
	LastPaymentError struct {
		AdviceCode string `json:"advice_code"`
	} `json:"last_payment_error"`
	Error struct {
		AdviceCode string `json:"advice_code"`
	} `json:"error"`
}

// adviceIn returns the advice of an intent or an error, empty where there is none.
func adviceIn(last *api.APIResponse) string {
	var a advised
	if last == nil || json.Unmarshal(last.RawJSON, &a) != nil {
		return ""
	}
	return cmp.Or(a.Error.AdviceCode, a.LastPaymentError.AdviceCode)
}
