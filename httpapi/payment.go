package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// wallets answers with the payment methods of clients, and changes them.
type wallets struct {
	wallet Wallet
	audit  *audit
}

// list answers GET /client/payment-methods.
func (w wallets) list(c *call) error {
	methods, err := w.wallet.List(c.ctx(), c.actor)
	if err != nil {
		return err
	}
	return c.answerClient(http.StatusOK, plural(len(methods), "payment method"), resource.List(methods, resource.NewMethod))
}

// add answers POST /client/payment-methods: 201 for a card that the client did not have.
func (w wallets) add(c *call) error {
	makeDefault, _ := c.values["set_default"].(bool)
	added, err := w.wallet.Add(c.ctx(), rental.NewCard{
		Token: c.text("payment_method_id"), Default: makeDefault, Actor: c.actor, RequestID: c.id, Key: c.key,
		Activity: c.entry(rental.MethodAdd, 0),
	})
	w.recordUnchanged(c, rental.MethodAdd, added.Replayed, err)
	switch {
	case err != nil:
		return err
	case added.Existed:
		return c.answerClient(http.StatusOK, added.Method.Label()+" was saved already.", resource.NewMethod(added.Method))
	}
	return c.answerClient(http.StatusCreated, added.Method.Label()+" was added.", resource.NewMethod(added.Method))
}

// remove answers DELETE /client/payment-methods/{id}.
func (w wallets) remove(c *call) error {
	err := w.wallet.Remove(c.ctx(), methodRequest(c, rental.MethodRemove))
	if w.recordUnchanged(c, rental.MethodRemove, false, err); err != nil {
		return err
	}
	return c.answerClient(http.StatusOK, "The payment method was removed.", nil)
}

// setDefault answers POST /client/payment-methods/{id}/default.
func (w wallets) setDefault(c *call) error {
	method, replayed, err := w.wallet.SetDefault(c.ctx(), methodRequest(c, rental.MethodDefault))
	if w.recordUnchanged(c, rental.MethodDefault, replayed, err); err != nil {
		return err
	}
	message := method.Label() + " is the default payment method."
	if !method.Default { // another one was chosen since the request that this one repeats
		message = method.Label() + " was the default payment method, and is not any more."
	}
	return c.answerClient(http.StatusOK, message, resource.NewChosenMethod(method))
}

// methodRequest returns the request about the payment method that the path names.
func methodRequest(c *call, activity string) rental.MethodRequest {
	return rental.MethodRequest{
		Method: rental.MethodID(c.pathInteger("id")), Actor: c.actor, Key: c.key, Activity: c.entry(activity, 0),
	}
}

// recordUnchanged records a refusal or a repetition, which the wallet does not record [LAW-9]. It
// also marks the answer to a repetition.
func (w wallets) recordUnchanged(c *call, activity string, replayed bool, refusal error) {
	c.markReplayed(replayed)
	entry := c.entry(activity, 0)
	switch {
	case replayed:
		entry.Code = telematics.IdempotencyReplayed
	case refusal == nil:
		return
	default:
		entry.Code = asError(refusal).Code
		entry.Outcome = notChanged(entry.Code)
	}
	w.audit.recordLater(c.ctx(), entry)
}

// webhooks receives notices of the payment processor.
type webhooks struct {
	processor  Webhooks // nil: none is configured
	liveMoney  bool
	nudge      func() // nil: no collector
	readBudget time.Duration
	log        *slog.Logger
}

// stripe answers POST /webhooks/stripe. It only stores a notice: the processor expects a fast
// answer, and repeats notices that are not answered with 2xx.
//
// A notice of the wrong mode (test instead of live, or the reverse) has a valid signature, so a
// repetition would not help: it is answered with 200, logged, and not stored.
func (w webhooks) stripe(c *call) error {
	if err := c.readBody(maxNotice); err != nil {
		return err // 413
	}
	if w.processor == nil {
		return noProcessor()
	}
	notice, err := w.processor.Read(c.Request().Header, c.body)
	if err != nil {
		return forgedNotice(err)
	}
	if err := checkNotice(notice, c.body); err != nil {
		return err // 400
	}
	if notice.Live != w.liveMoney {
		w.log.WarnContext(c.ctx(), "notice of the other mode ignored: the webhook's secret and the key are of two modes",
			"notice", notice.ID, "type", notice.Type, "live", notice.Live, "request_id", c.id)
		return c.answer("The notice is of the other mode (test or live) than this installation; it was ignored.", nil)
	}
	if notice.Kind == rental.AboutOther {
		return c.answer("The notice is about nothing that is recorded here; it was ignored.", nil)
	}
	ctx, cancel := detached(c, w.readBudget)
	defer cancel()
	if err := w.processor.Keep(ctx, notice); err != nil {
		return fmt.Errorf("keep notice %s: %w", notice.ID, err) // 503: the processor repeats it
	}
	if w.nudge != nil {
		w.nudge()
	}
	return c.answer("The notice was accepted.", nil)
}

// checkNotice refuses a signed notice that cannot be stored, or that parsers may read differently.
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
	return &telematics.Error{Code: webhookSignatureInvalid, Cause: cause, Message: "The signature of the notice is not valid."}
}

func noProcessor() *telematics.Error {
	return &telematics.Error{
		Code: serviceUnavailable, Retryable: true, RetryAfter: retryUnavailable,
		Message: "No payment processor is configured.",
	}
}
