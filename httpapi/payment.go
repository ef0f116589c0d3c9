package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// wallets answers with the payment methods of clients, and changes them.
type wallets struct{ *server }

func (w wallets) list(c *request.Call) error {
	methods, err := w.Wallet.List(c.Ctx(), c.Actor)
	if err != nil {
		return err
	}
	return c.AnswerClient(http.StatusOK, request.Plural(len(methods), "payment method"), resource.List(methods, resource.NewMethod))
}

// mostClients is how many clients a search finds: more are an answer to type more.
const mostClients = 20

func (b bookings) clients(c *request.Call) error {
	found, err := b.Bookings.FindClients(c.Ctx(), c.QueryAgency(), c.QueryParam("q"), mostClients)
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(found), "client"), resource.List(found, resource.NewClient))
}

func (b bookings) clientMethods(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	methods, err := b.Bookings.ClientMethods(c.Ctx(), agency, c.Param("client"))
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(methods), "payment method"), resource.List(methods, resource.NewMethod))
}

func (w wallets) add(c *request.Call) error {
	makeDefault, _ := c.Values["set_default"].(bool)
	added, err := w.Wallet.Add(c.Ctx(), rental.NewCard{
		Token: c.Text("payment_method_id"), Default: makeDefault, Actor: c.Actor, Key: c.Key,
		Activity: c.Entry(rental.MethodAdd, 0),
	})
	w.recordUnchanged(c, rental.MethodAdd, added.Replayed, err)
	switch {
	case err != nil:
		return err
	case added.Existed:
		return c.AnswerClient(http.StatusOK, added.Method.Label()+" was saved already.", resource.NewMethod(added.Method))
	}
	return c.AnswerClient(http.StatusCreated, added.Method.Label()+" was added.", resource.NewMethod(added.Method))
}

func (w wallets) remove(c *request.Call) error {
	err := w.Wallet.Remove(c.Ctx(), methodRequest(c, rental.MethodRemove))
	if w.recordUnchanged(c, rental.MethodRemove, false, err); err != nil {
		return err
	}
	return c.AnswerClient(http.StatusOK, "The payment method was removed.", nil)
}

func (w wallets) setDefault(c *request.Call) error {
	method, replayed, err := w.Wallet.SetDefault(c.Ctx(), methodRequest(c, rental.MethodDefault))
	if w.recordUnchanged(c, rental.MethodDefault, replayed, err); err != nil {
		return err
	}
	message := method.Label() + " is the default payment method."
	if !method.Default { // another one was chosen since the request that this one repeats
		message = method.Label() + " was the default payment method, and is not any more."
	}
	return c.AnswerClient(http.StatusOK, message, resource.NewChosenMethod(method))
}

// methodRequest returns the request about the payment method that the path names.
func methodRequest(c *request.Call, activity string) rental.MethodRequest {
	return rental.MethodRequest{
		Method: rental.MethodID(c.PathInteger("id")), Actor: c.Actor, Key: c.Key, Activity: c.Entry(activity, 0),
	}
}

// recordUnchanged records a refusal or a repetition, which the wallet does not record [LAW-9]. It
// also marks the answer to a repetition.
func (w wallets) recordUnchanged(c *request.Call, activity string, replayed bool, refusal error) {
	c.MarkReplayed(replayed)
	entry := c.Entry(activity, 0)
	switch {
	case replayed:
		entry.Code = telematics.IdempotencyReplayed
	case refusal == nil:
		return
	default:
		entry.Code = request.AsError(refusal).Code
		entry.Outcome = notChanged(entry.Code)
	}
	w.audit.RecordLater(c.Ctx(), entry)
}

// chargeList is the list of GET /admin/charges.
const chargeList = "charges" + request.ByID

func (b bookings) charges(c *request.Call) error {
	p := c.Page(chargeList)
	query := rental.ChargeQuery{
		Agency: c.QueryAgency(), Booking: rental.BookingID(c.QueryInteger("booking_id")), Client: c.QueryParam("client"),
		From: c.QueryTime("from"), To: c.QueryTime("to"), ByPaid: c.QueryParam("by") == "paid_at",
		States: listOf[rental.ChargeState](c.QueryParam("state")),
	}
	query.Limit, query.Before = p.QueryByID()
	found, err := b.Bookings.FindCharges(c.Ctx(), query)
	if err != nil {
		return err
	}
	listed, meta := request.CutAt(p, found, func(c rental.BookedCharge) string { return c.ID.String() })
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "charge"), resource.List(listed, resource.NewBookedCharge), meta)
}

// webhooks receives notices of the payment processor.
type webhooks struct{ *server }

// stripe answers POST /webhooks/stripe. It only stores a notice: the processor expects a fast
// answer, and repeats notices that are not answered with 2xx.
//
// A notice of the wrong mode (test instead of live, or the reverse) has a valid signature, so a
// repetition would not help: it is answered with 200, logged, and not stored.
func (w webhooks) stripe(c *request.Call) error {
	if err := c.ReadBody(maxNotice); err != nil {
		return err // 413
	}
	notice, err := w.Webhooks.Read(c.Request().Header, c.Body)
	if err != nil {
		return forgedNotice(err)
	}
	if err := checkNotice(notice, c.Body); err != nil {
		return err // 400
	}
	if notice.Live != w.LiveMoney {
		w.Log.WarnContext(c.Ctx(), "notice of the other mode ignored: the webhook's secret and the key are of two modes",
			"notice", notice.ID, "type", notice.Type, "live", notice.Live, "request_id", c.ID)
		return c.Answer("The notice is of the other mode (test or live) than this installation; it was ignored.", nil)
	}
	if notice.Kind == rental.AboutOther {
		return c.Answer("The notice is about nothing that is recorded here; it was ignored.", nil)
	}
	ctx, cancel := c.Detached(w.ReadBudget)
	defer cancel()
	if err := w.Webhooks.Keep(ctx, notice); err != nil {
		return fmt.Errorf("keep notice %s: %w", notice.ID, err) // 503: the processor repeats it
	}
	w.Nudge()
	return c.Answer("The notice was accepted.", nil)
}

// checkNotice refuses a signed notice that cannot be stored, or that parsers may read differently.
func checkNotice(n rental.Notice, body []byte) error {
	if name, repeated := contract.RepeatedName(body); repeated {
		return request.Malformed(fmt.Sprintf("The notice has the member %q twice.", name), nil)
	}
	for _, text := range []string{n.ID, n.Type, n.Object} {
		if strings.ContainsRune(text, 0) || len(text) > maxNoticeText {
			message := fmt.Sprintf("The notice's id, type and object must have at most %d bytes, and no NUL.", maxNoticeText)
			return request.Malformed(message, nil)
		}
	}
	return nil
}

func forgedNotice(cause error) *telematics.Error {
	return &telematics.Error{Code: errorcode.WebhookSignatureInvalid, Cause: cause, Message: "The signature of the notice is not valid."}
}
