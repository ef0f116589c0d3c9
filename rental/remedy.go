package rental

import (
	"maps"
	"slices"
)

// Remedy is who can mend a payment that was not made. Only what its client can mend is owed, and
// keeps a vehicle locked.
type Remedy string

const (
	ByClient   Remedy = "client"   // with another card, or by confirming the payment
	ByOperator Remedy = "operator" // at the processor, or in the settings of the service
	ByService  Remedy = "service"  // which tries again by itself
	NoRemedy   Remedy = "none"     // none is needed: nothing is owed
)

// Motorpool's decline codes, in addition to the processor's, which are those of cards.
const (
	CodeNoCard   = "no_card"          // the client has no card that may be tried
	CodeCardGone = "card_gone"        // the processor no longer accepts the card
	CodeExpired  = "expired"          // the processor ended the hold
	CodeRefused  = "refused"          // the processor rejected the request as invalid
	CodeCanceled = "canceled"         // the payment was cancelled at the processor
	CodeTooSmall = "amount_too_small" // less than the processor takes
)

// remedies holds the decline codes that are not about a card.
var remedies = map[string]Remedy{
	CodeExpired:  NoRemedy,
	CodeRefused:  ByOperator,
	CodeCanceled: ByOperator,
	CodeTooSmall: NoRemedy,
}

// RemedyOf returns who can mend a payment with a decline code. A code of the processor's is about
// the card, so another card may help.
func RemedyOf(declineCode string) Remedy {
	if r, ok := remedies[declineCode]; ok {
		return r
	}
	return ByClient
}

// CodesFor returns the decline codes that are not about a card and that someone can mend, sorted.
func CodesFor(r Remedy) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(remedies)), func(code string) bool { return remedies[code] != r })
}

// CodesNotFor returns the other decline codes that are not about a card, sorted.
func CodesNotFor(r Remedy) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(remedies)), func(code string) bool { return remedies[code] == r })
}

// Failures maps each kind of failure of the processor to who can mend it.
var Failures = map[ProcessorFailure]Remedy{
	CardRefused:     ByClient,
	NotKnown:        ByOperator,
	Refused:         ByOperator,
	TooSmall:        NoRemedy,
	WrongState:      ByService,
	NotDone:         ByService,
	MayHaveHappened: ByService,
	BrokenThere:     ByService,
	NotOurs:         ByOperator,
}
