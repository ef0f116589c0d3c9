package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// chosenMethodBody is what setting a default tells of a payment method.
type chosenMethodBody struct {
	ID       rental.MethodID `json:"id"`
	Type     string          `json:"type"`
	Brand    string          `json:"brand"`
	LastFour string          `json:"last_four"`
	Default  bool            `json:"is_default"`
}

// methodBody is a payment method.
type methodBody struct {
	chosenMethodBody
	ExpMonth int    `json:"exp_month"`
	ExpYear  int    `json:"exp_year"`
	Created  string `json:"created_at"`
}

// card is the one type of payment method that there is.
const card = "card"

func newChosenMethodBody(m rental.Method) chosenMethodBody {
	return chosenMethodBody{ID: m.ID, Type: card, Brand: m.Brand, LastFour: m.LastFour, Default: m.Default}
}

func newMethodBody(m rental.Method) methodBody {
	return methodBody{chosenMethodBody: newChosenMethodBody(m), ExpMonth: m.ExpMonth, ExpYear: m.ExpYear, Created: timestamp(m.Created)}
}

// paymentMethods answers GET /client/payment-methods.
func (s *server) paymentMethods(c echo.Context) error {
	methods, err := s.Wallet.List(c.Request().Context(), callOf(c).actor)
	if err != nil {
		return err
	}
	return s.answerClient(c, http.StatusOK, counted(len(methods), "payment method"), bodies(methods, newMethodBody))
}

// addPaymentMethod answers POST /client/payment-methods: 201 for a card that the client did not have.
func (s *server) addPaymentMethod(c echo.Context) error {
	call := callOf(c)
	token, _ := call.values["payment_method_id"].(string)
	makeDefault, _ := call.values["set_default"].(bool)
	added, err := s.Wallet.Add(c.Request().Context(), rental.NewCard{
		Token: token, Default: makeDefault, Actor: call.actor, RequestID: call.id, Key: call.key,
		Line: call.line(rental.MethodAdd, 0, s.Now()),
	})
	s.noteUnchanged(c, rental.MethodAdd, added.Replayed, err)
	switch {
	case err != nil:
		return err
	case added.Existed:
		return s.answerClient(c, http.StatusOK, added.Method.Label()+" was saved already.", newMethodBody(added.Method))
	}
	return s.answerClient(c, http.StatusCreated, added.Method.Label()+" was added.", newMethodBody(added.Method))
}

// removePaymentMethod answers DELETE /client/payment-methods/{id}.
func (s *server) removePaymentMethod(c echo.Context) error {
	request, err := s.methodRequest(c, rental.MethodRemove)
	if err != nil {
		return err
	}
	err = s.Wallet.Remove(c.Request().Context(), request)
	if s.noteUnchanged(c, rental.MethodRemove, false, err); err != nil {
		return err
	}
	return s.answerClient(c, http.StatusOK, "The payment method was removed.", nil)
}

// setDefaultPaymentMethod answers POST /client/payment-methods/{id}/default.
func (s *server) setDefaultPaymentMethod(c echo.Context) error {
	request, err := s.methodRequest(c, rental.MethodDefault)
	if err != nil {
		return err
	}
	method, replayed, err := s.Wallet.SetDefault(c.Request().Context(), request)
	if s.noteUnchanged(c, rental.MethodDefault, replayed, err); err != nil {
		return err
	}
	message := method.Label() + " is the default payment method."
	if !method.Default { // another one was chosen since the request that this one repeats
		message = method.Label() + " was the default payment method, and is no more."
	}
	return s.answerClient(c, http.StatusOK, message, newChosenMethodBody(method))
}

// methodRequest returns what is asked for about the payment method that the path names.
func (s *server) methodRequest(c echo.Context, activity string) (rental.MethodRequest, error) {
	call := callOf(c)
	id, err := contract.ParseInteger(c.Param("id"))
	if err != nil {
		return rental.MethodRequest{}, contract.Invalid("id", "must be an integer")
	}
	return rental.MethodRequest{
		Method: rental.MethodID(id), Actor: call.actor, Key: call.key, Line: call.line(activity, 0, s.Now()),
	}, nil
}

// noteUnchanged writes down what the wallet leaves out, because it changed nothing: a refusal, and a repetition, which is also
// marked as one [LAW-9].
func (s *server) noteUnchanged(c echo.Context, activity string, replayed bool, refusal error) {
	markReplayed(c, replayed)
	line := callOf(c).line(activity, 0, s.Now())
	switch {
	case replayed:
		line.Code = telematics.IdempotencyReplayed
	case refusal == nil:
		return
	default:
		line.Code, line.Outcome = asError(refusal).Code, telematics.NotExecuted
	}
	if line.Code == serviceUnavailable || line.Code == telematics.Internal {
		line.Outcome = telematics.MayHave // the record may have it without having said so
	}
	s.Refusals.Note(context.WithoutCancel(c.Request().Context()), line)
}

// stripeWebhook takes what the payment processor tells. It only writes it down: the processor wants an answer soon, and
// what is not answered with 2xx comes again.
//
// A notice of the other mode (of test money where there is real money, or the other way round) bears a good signature, so
// sending it again mends nothing: it is answered like one that is wanted, told to the log, and not kept.
func (s *server) stripeWebhook(c echo.Context) error {
	call, request := callOf(c), c.Request()
	if err := call.readUpTo(c, maxNotice); err != nil {
		return err // 413
	}
	if s.Webhooks == nil {
		return noProcessor()
	}
	notice, err := s.Webhooks.Read(request.Header, call.body)
	if err != nil {
		return forgedNotice(err)
	}
	if err := checkNotice(notice, call.body); err != nil {
		return err // 400
	}
	if notice.Live != s.LiveMoney {
		s.Log.WarnContext(request.Context(), "notice of the other mode ignored: the webhook's secret and the key are of two modes",
			"notice", notice.ID, "type", notice.Type, "live", notice.Live, "request_id", call.id)
		return s.answer(c, "This notice is not about the money that is moved here; it was ignored.", nil)
	}
	if notice.Kind == rental.AboutOther {
		return s.answer(c, "This notice is about nothing that is kept here; it was ignored.", nil)
	}
	// Who hangs up has told it all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), s.ReadBudget)
	defer cancel()
	if err := s.Webhooks.Keep(ctx, notice); err != nil {
		return fmt.Errorf("keep notice %s: %w", notice.ID, err) // 503: it comes again
	}
	if s.Nudge != nil {
		s.Nudge()
	}
	return s.answer(c, "The notice was taken.", nil)
}

// checkNotice refuses a signed notice that cannot be kept, or that two parsers would read differently.
func checkNotice(n rental.Notice, body []byte) error {
	if name, repeated := contract.RepeatedName(body); repeated {
		return malformed(fmt.Sprintf("The notice has the member %q twice.", name), nil)
	}
	for _, text := range []string{n.ID, n.Type, n.Object} {
		if strings.ContainsRune(text, 0) || len(text) > maxNoticeText {
			return malformed(fmt.Sprintf("The notice's id, type and object must have at most %d bytes, and no NUL.", maxNoticeText), nil)
		}
	}
	return nil
}

func forgedNotice(cause error) *telematics.Error {
	return &telematics.Error{Code: webhookSignatureInvalid, Cause: cause, Message: "The notice is not signed as the payment processor signs."}
}

func noProcessor() *telematics.Error {
	return &telematics.Error{Code: serviceUnavailable, Retryable: true, RetryAfter: retryUnavailable, Message: "No payment processor is set up here."}
}
