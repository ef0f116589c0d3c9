package httpapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// maxNotice is the largest body of a notice in bytes.
const maxNotice = 256 << 10

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

// maxNoticeText bounds the id, the type and the object of a notice in bytes; the processor's have fewer than 100.
const maxNoticeText = 255

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
	return &telematics.Error{Code: serviceUnavailable, Retryable: true, RetryAfter: retryAway, Message: "No payment processor is set up here."}
}
