package rental

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"motorpool/telematics"
)

// ClientID identifies a client: an agency and the subject of a token. It is assigned at first use.
type ClientID int64

// Client is a customer of an agency.
type Client struct {
	ID       ClientID
	Agency   telematics.AgencyID
	Subject  string
	Customer string   // the processor's id; empty: not created there yet
	Key      string   // a UUID; idempotency key for creating the customer at the processor
	Default  MethodID // zero: there is no payment method
}

// MethodID identifies a payment method; zero: none.
type MethodID int64

// MaxMethods is how many payment methods a client may have.
const MaxMethods = 10

// Card is the data of a card that a processor returns.
type Card struct {
	Token       string // the processor's id of the payment method
	Brand       string // in lower case: visa, mastercard, amex …
	LastFour    string
	ExpMonth    int
	ExpYear     int
	Fingerprint string // equal for the same card number; empty: the processor has none
}

// Method is a client's payment method: a card that the processor holds.
type Method struct {
	ID     MethodID
	Client ClientID
	Card
	Default bool
	Created time.Time
}

// Label returns a card's name for its owner: Visa •••• 4242.
func (c Card) Label() string {
	names := map[string]string{
		"amex": "American Express", "diners": "Diners Club", "jcb": "JCB", "unionpay": "UnionPay",
		"mastercard": "Mastercard",
	}
	name, ok := names[c.Brand]
	if !ok && c.Brand != "" {
		name = strings.ToUpper(c.Brand[:1]) + strings.ReplaceAll(c.Brand[1:], "_", " ")
	}
	name = cmp.Or(name, "Card")
	return fmt.Sprintf("%s •••• %s", name, c.LastFour)
}

// NewCard is a client's request to add a card.
type NewCard struct {
	Token    string // the processor's id of the payment method
	Default  bool
	Actor    telematics.Actor
	Key      *telematics.IdempotencyKey
	Activity telematics.Activity // of the history
}

// MethodRequest is a client's request to change or remove one of its payment methods.
type MethodRequest struct {
	Method   MethodID
	Actor    telematics.Actor
	Key      *telematics.IdempotencyKey
	Activity telematics.Activity // of the history
}

// Unfit returns why a card cannot be stored; empty: it can.
func (c Card) Unfit(now time.Time) string {
	switch {
	case c.Token == "" || !isDigits(c.LastFour, 4) || c.ExpMonth < 1 || c.ExpMonth > 12 || c.ExpYear < 2000 || c.ExpYear > 9999:
		return "it is no card"
	case !now.Before(time.Date(c.ExpYear, time.Month(c.ExpMonth)+1, 1, 0, 0, 0, 0, time.UTC)):
		return "the card has expired"
	}
	return ""
}

func isDigits(s string, n int) bool {
	return len(s) == n && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
