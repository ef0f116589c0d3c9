package stripe

import (
	"cmp"
	"encoding/json"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// hard are the decline codes after which the same card is not retried: the card is not or no longer
// valid, its owner forbade it, or the issuer demands it (https://docs.stripe.com/declines/codes,
// and the codes that Stripe itself never retries:
// https://docs.stripe.com/billing/revenue-recovery/smart-retries). Card networks charge fees for
// such retries.
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

// adviceNever is an issuer's advice, which replaces some of the codes
// (https://docs.stripe.com/declines/card#retrying-issuer-declines).
const adviceNever = "do_not_try_again"

// acts are the codes after which the payment can succeed if the card's owner confirms it.
var acts = map[string]bool{
	"authentication_required":               true,
	"payment_intent_authentication_failure": true, // the owner did not confirm
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

// goneCard returns the decline for a card that the processor does not hold, or no longer.
func goneCard() *rental.Decline {
	return &rental.Decline{Code: "payment_method_unusable", Hard: true, Message: "The payment processor does not store this card any more."}
}

// advised is the parts of a response with an issuer's advice, which the library does not read.
type advised struct {
	LastPaymentError struct {
		AdviceCode string `json:"advice_code"`
	} `json:"last_payment_error"`
	Error struct {
		AdviceCode string `json:"advice_code"`
	} `json:"error"`
}

// adviceIn returns the issuer's advice in the response, or "".
func adviceIn(last *api.APIResponse) string {
	var a advised
	if last == nil || json.Unmarshal(last.RawJSON, &a) != nil {
		return ""
	}
	return cmp.Or(a.Error.AdviceCode, a.LastPaymentError.AdviceCode)
}
