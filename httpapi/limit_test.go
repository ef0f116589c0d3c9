package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi"
	"motorpool/httpapi/request"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// limiter counts down and never recovers.
type limiter struct {
	mu    sync.Mutex
	taken map[string]int
	asked []string
	trips int
	err   error
}

const (
	untilFull = 5500 * time.Millisecond
	untilOne  = 2300 * time.Millisecond
)

func (l *limiter) Take(ctx context.Context, limits ...telematics.Limit) (quotas []telematics.Quota, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trips++
	for _, limit := range limits {
		l.asked = append(l.asked, limit.Key)
		if err := errors.Join(ctx.Err(), l.err); err != nil {
			return nil, err
		}
		if l.taken[limit.Key]+limit.Cost > limit.Rate.Limit {
			return append(quotas, telematics.Quota{Limit: limit.Rate.Limit, Over: true, Reset: untilOne}), nil
		}
		l.taken[limit.Key] += limit.Cost
		quotas = append(
			quotas,
			telematics.Quota{Limit: limit.Rate.Limit, Remaining: limit.Rate.Limit - l.taken[limit.Key], Reset: untilFull},
		)
	}
	return quotas, nil
}

func (l *limiter) drain() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = nil
	return asked
}

func limitedBy(l *limiter, rates request.Rates) func(*httpapi.Config) {
	l.taken = map[string]int{}
	return func(c *httpapi.Config) { c.Limiter, c.Rates = l, rates }
}

func limitedAPI(t *testing.T, rates request.Rates) (*api, *limiter) {
	t.Helper()
	l := &limiter{}
	return newAPI(t, limitedBy(l, rates)), l
}

// wantsQuota checks the three headers; empty: absent.
func (r *response) wantsQuota(limit, remaining, reset string) *response {
	r.t.Helper()
	got := []string{r.header.Get("RateLimit-Limit"), r.header.Get("RateLimit-Remaining"), r.header.Get("RateLimit-Reset")}
	same(r.t, got, []string{limit, remaining, reset}, "RateLimit-Limit, -Remaining and -Reset")
	return r
}

func TestLimit_CommandsOfAVehicle(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Vehicle: 2, Admin: 100})
	a.post(lock).wants(200, "").wantsQuota("2", "1", "6")
	a.post(strings.Replace(lock, "lock", "unlock", 1), ofAgency(1)).wants(200, "").wantsQuota("2", "0", "6")
	r := a.post(lock).wants(429, "rate_limited").wantsQuota("2", "0", "3").wantsRetryAfter("3")
	if e := r.body.Error; !e.Retryable || text(e.Outcome) != "not_executed" || e.CommandID != nil {
		t.Errorf("error %s", r.text)
	}
	r.says("The limit of 2 commands a minute for vehicle 42 is used up; nothing was sent. Try again in 3 seconds.")
	same(t, a.controller.count(), 2, "orders")
	a.wantsEntries(logged{
		Action: "command.lock", Code: "rate_limited", Outcome: telematics.NotExecuted, Vehicle: 42,
		Actor: telematics.Actor{Subject: "admin-7"}, RequestID: uuid.MustParse(r.body.RequestID),
	})
	// A read does not count against the vehicle's limit.
	a.get(status42).wants(200, "").wantsQuota("100", "97", "6")
	a.post("/api/v1/admin/vehicles/2/control/lock").wants(200, "").wantsQuota("2", "1", "6")
}

func TestLimit_RequestsOfAnAdministrator(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Vehicle: 10, Admin: 9})
	for range reads {
		a.get("/api/v1/admin/vehicles/42").wants(200, "")
	}
	a.post(lock).wants(200, "").wantsQuota("9", "0", "6")
	for _, read := range reads {
		r := a.get(read).wants(429, "rate_limited").wantsQuota("9", "0", "3").wantsRetryAfter("3")
		if r.body.Error.Outcome != nil || r.body.Message != "Your limit of 9 requests a minute is used up. Try again in 3 seconds." {
			t.Errorf("%s: %s", read, r.text)
		}
	}
	a.do(http.MethodHead, status42).wantsQuota("9", "0", "3")
	if r := a.post(lock).wants(429, "rate_limited"); text(r.body.Error.Outcome) != "not_executed" {
		t.Errorf("a refused order: %s, want not executed", r.text)
	}
	// Another subject and another agency have separate limits.
	a.get(status42, ofAgency(1)).wants(200, "").wantsQuota("9", "8", "6")
	a.get("/api/v1/admin/vehicles", ofAgency(2)).wants(200, "").wantsQuota("9", "8", "6")
}

func TestLimit_VehicleIsNotCountedOverTheActorsLimit(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 10, Admin: 1})
	a.post(lock).wants(200, "")
	assert.DeepEqual(t, l.drain(), []string{"admin:0:admin-7", "vehicle:42"}, "counted against")
	a.post(lock).wants(429, "rate_limited").wantsQuota("1", "0", "3")
	assert.DeepEqual(t, l.drain(), []string{"admin:0:admin-7"}, "counted against")
}

func TestLimit_HeadersShowTheLimitWithTheLeastLeft(t *testing.T) {
	for name, c := range map[string]struct {
		vehicle, admin int
		limit, left    string
	}{
		"the vehicle's is lower":       {3, 9, "3", "2"},
		"the administrator's is lower": {9, 3, "3", "2"},
		"both are the same":            {5, 5, "5", "4"},
		"only the vehicle's":           {5, 0, "5", "4"},
		"only the administrator's":     {0, 5, "5", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := limitedAPI(t, request.Rates{Vehicle: c.vehicle, Admin: c.admin})
			a.post(lock).wants(200, "").wantsQuota(c.limit, c.left, "6")
		})
	}
}

func TestLimit_HeadersAreInErrorsAfterIt(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Admin: 100})
	a.get("/api/v1/admin/vehicles/43").wants(404, "vehicle_not_found").wantsQuota("100", "99", "6")
	a.get("/api/v1/admin/vehicles?limit=0").wants(422, "validation_failed").wantsQuota("100", "98", "6")
	a.post(attention42, withJSON("{")).wants(400, "malformed_json").wantsQuota("100", "97", "6")
	a.post(attention42, withBody("{}")).wants(415, "unsupported_media_type").wantsQuota("100", "96", "6")
	a.fleet.err = gone{}
	a.get(status42).wants(503, "service_unavailable").wantsQuota("100", "95", "6")
}

func TestLimit_IsCheckedAfterTheRoleAndBeforeTheFields(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 1, Admin: 100})
	a.post(lock, withBody(strings.Repeat(" ", 64<<10+1))).wants(413, "body_too_large").wantsQuota("", "", "")
	a.post(lock, anonymous).wants(401, "unauthenticated").wantsQuota("", "", "")
	a.post(lock, byClient).wants(403, "forbidden").wantsQuota("", "", "")
	a.get("/api/v1/admin/nothing").wants(404, "not_found").wantsQuota("", "", "")
	a.do(http.MethodDelete, lock).wants(405, "method_not_allowed").wantsQuota("", "", "")
	same(t, len(l.drain()), 0, "counted against")
	// A path without a vehicle's number counts only for its caller.
	a.post("/api/v1/admin/vehicles/x/control/lock").wants(422, "validation_failed").wantsQuota("100", "99", "6")
	// An invalid request counts, too; over the limit, its fields are not checked.
	attention := strings.Replace(lock, "lock", "attention", 1)
	a.post(attention, withJSON(`{"signal":"siren"}`)).wants(422, "validation_failed").wantsQuota("1", "0", "6")
	a.post(attention, withJSON(`{"signal":"siren"}`)).wants(429, "rate_limited")
	a.post(attention, withBody(`{`)).wants(429, "rate_limited")
}

func TestLimit_ZeroIsNoLimit(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{})
	a.post(lock).wants(200, "").wantsQuota("", "", "")
	a.get(status42).wants(200, "").wantsQuota("", "", "")
	same(t, len(l.drain()), 0, "counted against")
}

func TestLimit_NothingIsRefusedWhileRedisIsUnavailable(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 1, Admin: 1})
	l.err = gone{}
	for range 3 {
		a.post(lock).wants(200, "").wantsQuota("", "", "")
	}
}

// Otherwise an agency could use up the limits of another agency's vehicles, and would learn when
// they are used.
func TestLimit_OfAnotherAgencysVehicleIsNotCounted(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 5, Admin: 100})
	a.controller.fails(telematics.NoSuchVehicle(42))
	outsider := ofAgency(2)
	a.post(lock, outsider).wants(404, "vehicle_not_found").wantsQuota("100", "99", "6")
	a.post("/api/v1/admin/vehicles/43/control/lock", outsider).wants(404, "vehicle_not_found").wantsQuota("100", "98", "6")
	if asked := strings.Join(l.drain(), " "); strings.Contains(asked, "vehicle") {
		t.Errorf("counted against %s", asked)
	}
	a.post("/api/v1/admin/vehicles/9/control/lock", outsider).wants(404, "vehicle_not_found").wantsQuota("5", "4", "6")
}

func TestLimit_DisconnectedCallerIsCounted(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Vehicle: 1})
	a.post(lock, disconnected).wants(200, "").wantsQuota("1", "0", "6")
	a.post(lock, disconnected).wants(429, "rate_limited")
}

func TestLimit_RepetitionIsNotCountedForTheVehicle(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Vehicle: 1})
	key := keyed("k")
	a.post(lock, key).wants(200, "")
	made := a.controller.last().Idempotency
	// The stored result of the first request.
	a.bulks.byID[telematics.NoCommand] = telematics.Bulk{Key: made}
	a.controller.replay = true
	for range 3 {
		a.post(lock, key).wants(200, "").heads("Idempotency-Replayed", "true")
	}
	a.post(lock, keyed("another")).wants(429, "rate_limited")
	a.post(lock, keyed("two words")).wants(429, "rate_limited")
	a.post(lock).wants(429, "rate_limited")
}

func TestLimit_OneTripCountsActorAndVehicle(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 10, Refresh: 10, Admin: 100})
	agency := ofAgency(1)
	for name, request := range map[string]func() *response{
		"order":                 func() *response { return a.post(lock, agency) },
		"order with a key":      func() *response { return a.post(lock, agency, keyed("k")) },
		"order of all agencies": func() *response { return a.post(lock) },
		"refresh":               func() *response { return a.get(status42+"?refresh=true", agency) },
		"read":                  func() *response { return a.get(status42, agency) },
	} {
		l.trips = 0
		if request().wants(200, ""); l.trips != 1 {
			t.Errorf("%s: %d round trips, want 1", name, l.trips)
		}
	}
	same(t, a.bulks.lookups, 1, "lookups of the key")
}

func TestLimit_ActorOverTheLimitCausesNoReads(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Vehicle: 10, Admin: 3})
	agency := ofAgency(1)
	for range 3 {
		a.post(lock, agency, keyed("k")).wants(200, "")
	}
	a.bulks.lookups, a.fleet.asked.belongs = 0, 0
	for range 100 {
		a.post(lock, agency, keyed("k")).wants(429, "rate_limited")
	}
	if a.bulks.lookups+a.fleet.asked.belongs != 0 {
		t.Errorf("%d keys and %d vehicles were looked up, want none", a.bulks.lookups, a.fleet.asked.belongs)
	}
}
