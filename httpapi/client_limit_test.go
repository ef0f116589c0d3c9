package httpapi_test

import (
	"net/http"
	"testing"

	"motorpool/httpapi"
	"motorpool/httpapi/request"
	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

const probeCard = httpapi.CardProbePath

func limitedClients(t *testing.T, clientRate, cardRate int) (*api, *limiter) {
	t.Helper()
	l := &limiter{}
	return probedAPI(t, limitedBy(l, request.Rates{Client: clientRate, Card: cardRate, Admin: 1})), l
}

func TestLimit_RequestsOfAClient(t *testing.T) {
	a, _ := limitedClients(t, 3, 0)
	for _, left := range []string{"2", "1", "0"} {
		a.asClient(http.MethodGet, probe).wants(200, "").wantsQuota("3", left, "6")
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r := a.asClient(method, probe).wants(429, "rate_limited").wantsQuota("3", "0", "3").wantsRetryAfter("3")
		r.says("Your limit of 3 requests a minute is used up. Try again in 3 seconds.").shows(`"retryable":true`, `"outcome":null`)
	}
	// Another client and another agency have separate limits.
	a.get(probe, clientOf(1, "client-2")).wants(200, "").wantsQuota("3", "2", "6")
	a.get(probe, clientOf(2, "client-1")).wants(200, "").wantsQuota("3", "2", "6")
}

func TestLimit_CardsOfAClient(t *testing.T) {
	a, l := limitedClients(t, 100, 2)
	a.asClient(http.MethodPost, probeCard).wants(200, "").wantsQuota("2", "1", "6")
	assert.DeepEqual(t, l.drain(), []string{"client:1:client-1", "cards:1:client-1"}, "counted against")
	a.asClient(http.MethodPost, probeCard).wants(200, "").wantsQuota("2", "0", "6")
	r := a.asClient(http.MethodPost, probeCard).wants(429, "rate_limited").wantsQuota("2", "0", "3").wantsRetryAfter("3")
	if r.body.Message != "Your limit of 2 cards an hour is used up. Try again in 3 seconds." || r.body.Error.Outcome != nil {
		t.Errorf("message %s", r.text)
	}
	a.wantsEntries(logged{Action: "probe.card", Code: "rate_limited", Outcome: telematics.NotExecuted})
	// Other requests do not count as cards.
	a.asClient(http.MethodGet, probe).wants(200, "").wantsQuota("100", "96", "6")
	a.asClient(http.MethodPost, probeCard, clientOf(1, "client-2")).wants(200, "").wantsQuota("2", "1", "6")
}

// A card that becomes the default is charged what is owed: two that are declined could take turns.
func TestLimit_DefaultCountsAsACard(t *testing.T) {
	p := newPurse(t, limitedBy(&limiter{}, request.Rates{Card: 3}))
	first, second := p.add("pm_1").wants(201, "").id(), p.add("pm_2").wants(201, "").id()
	p.asClient(http.MethodPost, methods+"/"+second+"/default").wants(200, "")
	p.asClient(http.MethodPost, methods+"/"+first+"/default").wants(429, "rate_limited")
}

// An extension of a rental is charged immediately, and is taken back where the card is declined.
func TestLimit_AnExtensionCountsAsACard(t *testing.T) {
	a := newBookingAPI(t, limitedBy(&limiter{}, request.Rates{Card: 1}))
	extend := func(hour string) *response {
		return a.asClient(http.MethodPost, ownBooking+"/extend", withJSON(`{"end_date":"2026-01-02T`+hour+`:00:00Z"}`))
	}
	extend("22").wants(200, "")
	extend("23").wants(429, "rate_limited")
	a.asClient(http.MethodGet, ownBooking+"/extend?end_date=2026-01-02T23:00:00Z").wants(200, "")
}

// A start tries the card again that was declined a moment ago.
func TestLimit_AStartCountsAsACard(t *testing.T) {
	a := newBookingAPI(t, limitedBy(&limiter{}, request.Rates{Card: 2}))
	a.rentals.result, a.rentals.step = failsWith(rental.StartUnpaid(rental.PaymentNeedsOwner)), rental.StepPay
	start, async := ownBooking+"/start", withHeader("Prefer", "respond-async")
	a.asClient(http.MethodPost, start, keyed("k")).wants(409, "payment_required")
	a.asClient(http.MethodPost, start, keyed("k")).wants(409, "payment_required") // a repetition
	a.rentals.result = nil
	a.asClient(http.MethodPost, start, async).wants(202, "")
	a.asClient(http.MethodPost, start, async).wants(202, "") // joins the one before
	a.asClient(http.MethodPost, ownBooking+"/transitions/"+a.rentals.last.String()+"/cancel").wants(200, "")
	a.asClient(http.MethodPost, start).wants(429, "rate_limited").
		says("Your limit of 2 cards and starts an hour is used up; nothing was sent. Try again in 3 seconds.")
	a.asClient(http.MethodPost, ownBooking+"/end", async).wants(202, "")
}

func TestLimit_CardLimitIsNotCountedOverTheRequestLimit(t *testing.T) {
	a, l := limitedClients(t, 1, 5)
	a.asClient(http.MethodGet, probe).wants(200, "")
	l.drain()
	a.asClient(http.MethodPost, probeCard).wants(429, "rate_limited").wantsQuota("1", "0", "3")
	assert.DeepEqual(t, l.drain(), []string{"client:1:client-1"}, "counted against")
}

// Refusals before the limits are not counted by them, and neither are their own. So the entries for
// refusals have a limit: the audit log cannot be deleted from.
func TestLimit_RefusalsInTheAuditLog(t *testing.T) {
	a, l := limitedClients(t, 2, 0) // and 1 for an administrator
	for range 5 {
		a.post(lock, byClient).wants(403, "forbidden")
	}
	a.wantsEntries(logged{Code: "forbidden"}, logged{})
	for range 5 {
		a.asClient(http.MethodPost, probeCard)
	}
	a.asClient(http.MethodPost, probeCard).wants(429, "rate_limited")
	a.wantsEntries(logged{}, logged{})
	a.post(lock, clientOf(1, "client-2")).wants(403, "forbidden")
	for range 50 {
		a.do(http.MethodPost, probeCard, withToken(adminToken())).wants(403, "forbidden")
	}
	a.post(lock).wants(200, "")
	l.err = gone{} // the bound also holds without Redis
	for range 50 {
		a.post(lock, keyed("two words")).wants(422, "validation_failed")
	}
	a.wantsEntries(logged{}, logged{}, logged{}, logged{})
	same(t, a.history.omitted, 3+4+49+50, "entries were counted as omitted")
}

func TestLimit_RepeatedCardWithItsKeyIsNotCounted(t *testing.T) {
	a, l := limitedClients(t, 0, 1)
	key := keyed("k")
	a.asClient(http.MethodPost, probeCard, key).wants(200, "").wantsQuota("1", "0", "6")
	// Without a stored result, the request is counted.
	a.asClient(http.MethodPost, probeCard, key).wants(429, "rate_limited")
	a.bulks.byID[telematics.NoCommand] = telematics.Bulk{Key: &telematics.IdempotencyKey{Agency: 1, Subject: "client-1", Key: "k"}}
	l.drain()
	a.asClient(http.MethodPost, probeCard, key).wants(200, "").wantsQuota("", "", "")
	a.asClient(http.MethodPost, probeCard, keyed("another")).wants(429, "rate_limited")
	assert.DeepEqual(t, l.drain(), []string{"cards:1:client-1"}, "counted against")
}

// Trying stolen cards must not become possible by an outage of Redis.
func TestLimit_CardsAreCountedWhileRedisIsUnavailable(t *testing.T) {
	a, l := limitedClients(t, 100, 3)
	l.err = gone{}
	for range 3 {
		a.asClient(http.MethodPost, probeCard).wants(200, "")
	}
	a.asClient(http.MethodPost, probeCard).wants(429, "rate_limited").wantsRetryAfter("1200")
	a.asClient(http.MethodPost, probeCard, clientOf(1, "client-2")).wants(200, "")
	a.asClient(http.MethodGet, probe).wants(200, "")
}
