package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// failure converts the error of a call to what is known about its effect [STR-2].
func failure(err error, t *trip, reads bool) *rental.ProcessorError {
	var response *api.Error
	if !errors.As(err, &response) {
		return unanswered(err, t, reads)
	}
	f := &rental.ProcessorError{Kind: kindOf(response, reads), Cause: causeOf(response)}
	advice := adviceIn(response.LastResponse)
	if response.PaymentIntent != nil && response.PaymentIntent.ID != "" {
		intent := intentOf(response.PaymentIntent, advice)
		f.Intent = &intent
	}
	if f.Kind == rental.CardRefused {
		f.Decline = declineOf(response, advice)
	}
	return f
}

// codes are the errors whose kind does not follow from their HTTP status
// (https://docs.stripe.com/error-codes).
var codes = map[api.ErrorCode]rental.ProcessorFailure{
	api.ErrorCodeResourceMissing:                    rental.NotKnown,
	api.ErrorCodeAmountTooSmall:                     rental.TooSmall,
	api.ErrorCodeLockTimeout:                        rental.NotDone,
	api.ErrorCodePaymentIntentUnexpectedState:       rental.WrongState,
	api.ErrorCodeChargeAlreadyCaptured:              rental.WrongState,
	api.ErrorCodeChargeAlreadyRefunded:              rental.WrongState,
	api.ErrorCodeChargeExpiredForCapture:            rental.WrongState,
	api.ErrorCodePaymentIntentPaymentAttemptExpired: rental.WrongState,
	// An earlier request with the key is still in progress: its result is unknown.
	api.ErrorCodeIdempotencyKeyInUse: rental.MayHaveHappened,
}

func kindOf(e *api.Error, reads bool) rental.ProcessorFailure {
	switch status := e.HTTPStatusCode; {
	case status >= http.StatusInternalServerError:
		return broken(reads)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return rental.NotOurs
	case e.Type == api.ErrorTypeCard:
		return rental.CardRefused
	case codes[e.Code] != "":
		return codes[e.Code]
	case status == http.StatusTooManyRequests:
		return rental.NotDone
	case status == http.StatusNotFound:
		return rental.NotKnown
	case status == http.StatusConflict:
		return rental.MayHaveHappened
	}
	return rental.Refused
}

// broken returns the kind of an internal error of the processor. A read may be repeated.
func broken(reads bool) rental.ProcessorFailure {
	if reads {
		return rental.NotDone
	}
	return rental.BrokenThere
}

var (
	errNoID       = errors.New("this is no id of the processor's")
	errNotCard    = errors.New("this payment method is no card")
	errUnreadable = errors.New("the answer is not Stripe's, or not whole")
)

// unanswered returns the error of a call without a valid response of Stripe: there was none, or it
// was incomplete, or from another server. The error contains nothing of the response [STR-3].
func unanswered(err error, t *trip, reads bool) *rental.ProcessorError {
	status := int(t.status.Load())
	f := &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: err}
	if status != 0 {
		f.Cause = fmt.Errorf("status %d: %w", status, errUnreadable)
		for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
			if errors.Is(err, known) {
				f.Cause = fmt.Errorf("status %d: %w", status, known)
			}
		}
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.Kind = rental.NotOurs
	case status >= http.StatusInternalServerError:
		f.Kind = broken(reads)
	case reads, status >= http.StatusMultipleChoices: // a proxy refused it
		f.Kind = rental.NotDone
	case status == 0 && !t.left.Load():
		f.Kind = rental.NotDone
	}
	return f
}

// causeOf returns the text of an error of Stripe, without the objects in it [STR-3], and
// without the token of a card, which its message may contain.
func causeOf(e *api.Error) error {
	words := []string{fmt.Sprint(e.HTTPStatusCode), string(e.Type)}
	for _, word := range []string{string(e.Code), string(e.DeclineCode), e.Param, withoutCards(e.Msg), e.RequestID} {
		if word != "" {
			words = append(words, word)
		}
	}
	return errors.New(strings.Join(words, ", "))
}

// kindIs reports whether an error is of a kind.
func kindIs(err error, kind rental.ProcessorFailure) bool {
	f, ok := errors.AsType[*rental.ProcessorError](err)
	return ok && f.Kind == kind
}
