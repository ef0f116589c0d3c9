package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// published are the cards that Stripe publishes for tests (https://docs.stripe.com/testing), by the
// id under which each is attached. It is a new payment method each time, of the same card.
var published = map[string]card{
	"pm_card_visa":               {Brand: "visa", Number: "4242424242424242"},
	"pm_card_visa_debit":         {Brand: "visa", Number: "4000056655665556", Funding: "debit"},
	"pm_card_mastercard":         {Brand: "mastercard", Number: "5555555555554444"},
	"pm_card_mastercard_debit":   {Brand: "mastercard", Number: "5200828282828210", Funding: "debit"},
	"pm_card_mastercard_prepaid": {Brand: "mastercard", Number: "5105105105105100", Funding: "prepaid"},
	"pm_card_amex":               {Brand: "amex", Number: "371449635398431"},
	"pm_card_discover":           {Brand: "discover", Number: "6011111111111117"},
	"pm_card_diners":             {Brand: "diners", Number: "3056930009020004"},
	"pm_card_jcb":                {Brand: "jcb", Number: "3566002020360505"},
	"pm_card_unionpay":           {Brand: "unionpay", Number: "6200000000000005"},

	// Refused when they are attached, and when they are charged.
	"pm_card_visa_chargeDeclined":                      {Brand: "visa", Number: "4000000000000002", Attach: "generic_decline"},
	"pm_card_visa_chargeDeclinedInsufficientFunds":     {Brand: "visa", Number: "4000000000009995", Attach: "insufficient_funds"},
	"pm_card_visa_chargeDeclinedLostCard":              {Brand: "visa", Number: "4000000000009987", Attach: "lost_card"},
	"pm_card_visa_chargeDeclinedStolenCard":            {Brand: "visa", Number: "4000000000009979", Attach: "stolen_card"},
	"pm_card_visa_chargeDeclinedVelocityLimitExceeded": {Brand: "visa", Number: "4000000000006975", Attach: "card_velocity_exceeded"},
	"pm_card_chargeDeclinedExpiredCard":                {Brand: "visa", Number: "4000000000000069", Attach: "expired_card"},
	"pm_card_chargeDeclinedIncorrectCvc":               {Brand: "visa", Number: "4000000000000127", Attach: "incorrect_cvc"},
	"pm_card_chargeDeclinedProcessingError":            {Brand: "visa", Number: "4000000000000119", Attach: "processing_error"},
	// The same under another name that is in use.
	"pm_card_visa_chargeDeclinedExpiredCard": {Brand: "visa", Number: "4000000000000069", Attach: "expired_card"},

	"pm_card_chargeCustomerFail":            {Brand: "visa", Number: "4000000000000341", Behaviour: Behaviour{Decline: "generic_decline"}},
	"pm_card_authenticationRequired":        {Brand: "visa", Number: "4000002760003184", Behaviour: Behaviour{Authenticate: true}},
	"pm_card_authenticationRequiredOnSetup": {Brand: "visa", Number: "4000002500003155", Behaviour: Behaviour{Authenticate: true}},
	"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": {Brand: "visa", Number: "4000008260003178",
		Behaviour: Behaviour{Authenticate: true, Decline: "insufficient_funds"}},
	"pm_card_pendingRefund": {Brand: "visa", Number: "4000000000007726", Behaviour: Behaviour{RefundPending: true}},
	"pm_card_refundFail":    {Brand: "visa", Number: "4000000000005126", Behaviour: Behaviour{RefundFails: true}},
}

// Every card is valid until then, unless it is changed.
const (
	expMonth = 12
	expYear  = 2034
)

// card is one of those that are published.
type card struct {
	Brand   string
	Number  string
	Funding string
	Attach  string // the decline code with which it is refused; empty: it is not
	Behaviour
}

// Behaviour is how charges and refunds of a card end.
type Behaviour struct {
	Decline       string `json:"decline_code"`   // empty: the charge succeeds
	Advice        string `json:"advice_code"`    // with a decline; empty: none
	Authenticate  bool   `json:"authenticate"`   // its owner must confirm
	RefundPending bool   `json:"refund_pending"` // a refund succeeds later
	RefundFails   bool   `json:"refund_fails"`   // a refund succeeds, and fails later
	Gone          bool   `json:"gone"`           // as if it did not exist, to payments
}

// fingerprint is the same for the same number.
func (c card) fingerprint() string {
	sum := sha256.Sum256([]byte(c.Number))
	return hex.EncodeToString(sum[:8])
}

// declined returns the failure of a declined card. Some reasons are separate codes, the others
// decline codes.
func declined(code, advice string) *failure {
	f := &failure{
		Status: http.StatusPaymentRequired, Type: cardError, Code: "card_declined", DeclineCode: code,
		AdviceCode: advice, Message: "Your card was declined.",
	}
	switch code {
	case "insufficient_funds":
		f.Message = "Your card has insufficient funds."
	case "expired_card":
		f.Code, f.DeclineCode, f.Message = code, "", "Your card has expired."
	case "incorrect_cvc":
		f.Code, f.Message = code, "Your card's security code is incorrect."
	case "processing_error":
		f.Code, f.Message = code, "An error occurred while processing your card. Try again in a little bit."
	case authentication:
		f.Code, f.Message = code, "Your card was declined. This transaction requires authentication."
	}
	return f
}
