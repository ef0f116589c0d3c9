package stripe

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	api "github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"motorpool/rental"
)

const signatureHeader = "Stripe-Signature"

var (
	errNoWebhookSecret = errors.New("no secret is set that notices could be signed with")
	errSignatures      = errors.New("want one " + signatureHeader + " header")
	errNoEvent         = errors.New("this is no event")
)

// Read returns the notice in a webhook request. It checks the signature of the body's exact bytes,
// which must be at most five minutes old. Any API version of the event is accepted, since only its
// type and the id of its object are read.
func (p *Processor) Read(header http.Header, body []byte) (rental.Notice, error) {
	if p.webhookSecret == "" {
		return rental.Notice{}, errNoWebhookSecret // anyone could sign with it
	}
	signatures := header.Values(signatureHeader)
	if len(signatures) != 1 {
		return rental.Notice{}, errSignatures
	}
	event, err := webhook.ConstructEventWithOptions(body, signatures[0], p.webhookSecret, webhook.ConstructEventOptions{
		Tolerance: webhook.DefaultTolerance, IgnoreAPIVersionMismatch: true,
	})
	if err != nil {
		return rental.Notice{}, fmt.Errorf("read event: %w", err)
	}
	if event.ID == "" || event.Type == "" || event.Data == nil {
		return rental.Notice{}, errNoEvent
	}
	n := rental.Notice{ID: event.ID, Type: string(event.Type), Live: event.Livemode}
	var status string
	if n.Kind, n.Object, status = classify(event); n.Kind == rental.AboutDispute && status != "" {
		n.Type += " " + status
	}
	return n, nil
}

// subject holds the fields that are read of an event's object.
type subject struct {
	ID     string          `json:"id"`
	Intent json.RawMessage `json:"payment_intent"` // of a charge or dispute: an id, or the payment
	Status string          `json:"status"`
}

// classify returns the kind of an event, and the id and status of its object; AboutOther if the
// event cannot be read (https://docs.stripe.com/api/events/types).
func classify(event api.Event) (kind rental.NoticeKind, object, status string) {
	var s subject
	if json.Unmarshal(event.Data.Raw, &s) != nil {
		return rental.AboutOther, "", ""
	}
	kind, object = rental.AboutOther, s.ID
	switch name := string(event.Type); {
	case strings.HasPrefix(name, "payment_intent."):
		kind = rental.AboutIntent
	case name == "charge.refunded": // its object is the charge, whose id is not stored
		kind, object = rental.AboutIntent, intentID(s.Intent)
	case strings.HasPrefix(name, "charge.dispute."):
		kind, object = rental.AboutDispute, intentID(s.Intent)
	case strings.HasPrefix(name, "refund."), strings.HasPrefix(name, "charge.refund."):
		kind = rental.AboutRefund
	case name == "payment_method.detached", name == "payment_method.updated", name == "payment_method.automatically_updated":
		kind = rental.AboutCard
	}
	if object == "" {
		kind = rental.AboutOther
	}
	return kind, object, s.Status
}

func intentID(raw json.RawMessage) string {
	if id, ok := api.ParseID(raw); ok {
		return id
	}
	var intent struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &intent) != nil {
		return ""
	}
	return intent.ID
}
