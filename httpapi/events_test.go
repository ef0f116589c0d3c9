package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
	"motorpool/broker/brokertest"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/stream"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestStream_SendsEvents(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	s := l.follow("").awaitBegin(t)
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		same(t, s.header.Get(name), want, "%s", name)
	}
	same(t, s.status, 200, "status")
	command := settled(
		delivery.Order{Vehicle: 42, Action: telematics.Lock, Actor: telematics.Actor{Subject: "admin-7"}},
		telematics.Succeeded,
	)
	fields := telematics.NewSnapshot()
	for field, value := range map[telematics.Field]any{
		telematics.Latitude: 48.1, telematics.LocatedAt: now, telematics.IsLocked: false, telematics.DoorTrunk: "open",
		telematics.Gear: nil,
		telematics.DTCs: []string{"P0420"}, telematics.RSRP: -97.0, telematics.Firmware: "4.2.1",
		telematics.OEMData: map[string]any{"seat": map[string]any{"heated": true}, "charging_status": "its own"},
		telematics.RawDTCs: []string{"0x42"}, telematics.RawCharging: nil,
	} {
		fields[field] = telematics.Reading{Value: value, At: now}
	}
	l.publish(command.Event(now), presence(42, 1), telematics.Event{
		Kind: telematics.StatusEvent, Vehicle: 42, Agency: 1, At: now,
		Change: &telematics.Change{Fields: fields, Large: []string{telematics.WarningLamps.String()}},
	}, telematics.Event{Kind: telematics.AlarmEvent, Vehicle: 42, Agency: 1, At: now, Alarm: &telematics.Alarm{Kind: "towing"}},
		alerts.Alert{
			ID: uuid.MustParse(anAlert), Rule: alerts.Battery12VLow, Severity: alerts.Critical, Agency: 1, Vehicle: 42, Plate: "M-IM 42",
			Since: now, Opened: now, Seen: &alerts.Acknowledgement{By: "ben", At: now},
		}.Event(alerts.HasRisen, now),
		telematics.HaltChange{Halt: telematics.Halt{Agency: 1, Why: "recall", By: "eva", Since: now}, InForce: true}.Event(now),
		telematics.HaltChange{Halt: telematics.Halt{Why: "theft", By: "tom", Since: now}}.Event(now),
		ofRental(telematics.BookingEvent, telematics.RentalChange{Booking: 7, Reference: "BK-2026-00007", Status: "upcoming"}),
		ofRental(telematics.RentalEvent, telematics.RentalChange{
			Booking: 7, Reference: "BK-2026-00007", Status: "active", Transition: "t1", Kind: "end", State: "open", Step: "confirm",
			NeedsStaff: true,
		}),
		telematics.Event{Kind: telematics.ResetEvent, At: now})
	got := s.await(t, 10)
	for i, want := range []struct{ event, data string }{
		{"command", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","command":{"id":"0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9",` +
			`"vehicle_id":42,"booking_id":null,"action":"lock","parameters":null,"state":"succeeded","outcome":"executed",` +
			`"requested_by":"admin-7","requested_at":"2026-01-02T09:59:57.940Z","sent_at":"2026-01-02T09:59:57.950Z",` +
			`"received_at":null,"completed_at":"2026-01-02T10:00:00.250Z","deadline":"2026-01-02T10:00:07.940Z",` +
			`"expires_at":"2026-01-02T10:00:08.000Z","attempts":1,"published_at":["2026-01-02T09:59:57.950Z"],` +
			`"latency_ms":2310,"late":false,"contradicted":false,"reason":null,"detail":null,` +
			`"reported":{"telemetry":{"is_locked":true}},"assurance":{"signed":true,"expiring":true,` +
			`"deduplicated":true,"correlated":false,"confirmed":true}}}`},
		{"presence", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","connectivity":{"status":"online",` +
			`"last_seen":"2026-01-02T10:00:00.250Z"}}`},
		{"status", `{"at":"2026-01-02T10:00:00.250Z","connectivity":{"firmware_version":"4.2.1","signal_quality":"moderate"},` +
			`"diagnostics":{"dtcs":["P0420"]},"location":{"latitude":48.1,"timestamp":"2026-01-02T10:00:00.250Z"},` +
			`"oem_data":{"charging_status":null,"dtcs_raw":["0x42"],"seat":{"heated":true}},` +
			`"telemetry":{"doors":{"trunk":"open"},"gear":null,"is_locked":false},` +
			`"too_large":["diagnostics.warning_lamps"],"vehicle_id":42}`},
		{"alarm", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","alarm":{"kind":"towing","text":null}}`},
		{"alert", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","change":"raised","alert":{"id":"` + anAlert + `",` +
			`"rule":"battery_12v_low","severity":"critical","state":"open","summary":"M-IM 42: 12 V battery is low",` +
			`"agency_id":1,"vehicle_id":42,"plate_number":"M-IM 42","person":null,"booking_id":null,"command_id":null,"facts":{},` +
			`"since":"2026-01-02T10:00:00.250Z","opened_at":"2026-01-02T10:00:00.250Z","cleared_at":null,` +
			`"acknowledged_at":"2026-01-02T10:00:00.250Z","acknowledged_by":"ben","note":null}}`},
		{"halt", `{"vehicle_id":null,"at":"2026-01-02T10:00:00.250Z","in_force":true,"halt":{"agency_id":1,"reason":"recall",` +
			`"by":"eva","since":"2026-01-02T10:00:00.250Z"}}`},
		{"halt", `{"vehicle_id":null,"at":"2026-01-02T10:00:00.250Z","in_force":false,"halt":{"agency_id":null,"reason":"theft",` +
			`"by":"tom","since":"2026-01-02T10:00:00.250Z"}}`},
		{"booking", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","booking_id":7,"reference":"BK-2026-00007","status":"upcoming"}`},
		{"rental", `{"vehicle_id":42,"at":"2026-01-02T10:00:00.250Z","booking_id":7,"reference":"BK-2026-00007","status":"active",` +
			`"transition":{"id":"t1","kind":"end","state":"open","step":"confirm","code":null,"needs_staff":true}}`},
		{"reset", `{"vehicle_id":null,"at":"2026-01-02T10:00:00.250Z","reason":"events_missing"}`},
	} {
		if got[i].event != want.event || got[i].data != want.data || got[i].id == "" {
			t.Errorf("event %d\n got %+v\nwant %+v", i, got[i], want)
		}
	}
}

func ofRental(kind telematics.EventKind, change telematics.RentalChange) telematics.Event {
	return telematics.Event{Kind: kind, Vehicle: 42, Agency: 1, At: now, Rental: &change}
}

func TestStream_AlertsAboutPersonsAreForAdministrators(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	admin := l.follow("?event=alert").awaitBegin(t)
	operator := l.follow("?event=alert", claiming(claimSet{"role": "operator"})).awaitBegin(t)
	ofOne := l.follow("?event=alert", claiming(claimSet{"agency_id": 1, "scope": nil})).awaitBegin(t)
	person := alerts.Alert{ID: uuid.MustParse(aPersonsAlert), Rule: alerts.MassAccess, Person: "anna", Since: now}
	vehicle := alerts.Alert{ID: uuid.MustParse(anAlert), Rule: alerts.Lamp, Agency: 1, Vehicle: 42, Since: now}
	l.publish(person.Event(alerts.HasOpened, now), vehicle.Event(alerts.HasCleared, now))
	if got := admin.await(t, 2)[0].data; !strings.Contains(got, `"person":"anna"`) || !strings.Contains(got, `"vehicle_id":null`) {
		t.Errorf("event %s", got)
	}
	for _, s := range []*eventStream{operator, ofOne} {
		if got := s.await(t, 1)[0].data; !strings.Contains(got, anAlert) {
			t.Errorf("event %s, want that of the vehicle alone", got)
		}
	}
}

func TestStream_MatchesTheContract(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var watching sync.WaitGroup
	// Its caller ends the stream when it is recorded: one that ends before is answered 503.
	watching.Go(func() {
		for ctx.Err() == nil && len(l.history.all()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	})
	defer watching.Wait()
	r := l.get(eventsPath+"?event=command,presence&vehicle_id=42", func(r *http.Request) { *r = *r.WithContext(ctx) })
	if r.status != 200 || !strings.HasPrefix(r.text, "retry: 3000\nid: ") {
		t.Errorf("%d %q", r.status, r.text)
	}
}

func TestStream_IsRefusedLikeOtherRequests(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	l.get(eventsPath, anonymous).wants(401, "unauthenticated")
	l.get(eventsPath+"?event=lies").wants(422, "validation_failed")
	l.get(eventsPath+"?vehicle_id=x").wants(422, "validation_failed")
	l.log.Break(gone{})
	l.get(eventsPath, after("17-0")).wants(503, "service_unavailable")
	l.feed.End()
	l.get(eventsPath).wants(503, "service_unavailable")

	// A feed that has not read the log yet.
	newAPI(t).get(eventsPath).wants(503, "service_unavailable")
}

func TestStream_SendsOnlyVisibleAndRequestedEvents(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	command := telematics.Command{Vehicle: 3, Agency: 2, Action: telematics.Lock, State: telematics.Accepted}
	readers := map[string]struct {
		stream *eventStream
		want   []string
	}{
		"all agencies":                  {l.follow(""), []string{"1", "2", "3", "3 command", "0 halt", "0 halt"}},
		"own agency":                    {l.follow("", ofAgency(2)), []string{"2", "3", "3 command", "0 halt"}},
		"another agency":                {l.follow("?agency_id=1", ofAgency(2)), nil},
		"all agencies, filtered by one": {l.follow("?agency_id=1"), []string{"1", "0 halt", "0 halt"}},
		"one vehicle":                   {l.follow("?vehicle_id=3"), []string{"3", "3 command"}},
		"another agency's vehicle":      {l.follow("?vehicle_id=1", ofAgency(2)), nil},
		"one kind":                      {l.follow("?event=command"), []string{"3 command"}},
		"halts":                         {l.follow("?event=halt", ofAgency(1)), []string{"0 halt", "0 halt"}},
		"two kinds":                     {l.follow("?event=command,presence&agency_id=2"), []string{"2", "3", "3 command"}},
	}
	for _, r := range readers {
		r.stream.awaitBegin(t)
	}
	l.publish(
		presence(1, 1), presence(2, 2), presence(3, 2), command.Event(now),
		telematics.HaltChange{Halt: telematics.Halt{Why: "recall"}, InForce: true}.Event(now),
		telematics.HaltChange{Halt: telematics.Halt{Agency: 1}}.Event(now),
		telematics.Event{Kind: telematics.ResetEvent, At: now},
	)
	for name, r := range readers {
		var got []string
		for _, e := range r.stream.await(t, len(r.want)+1) {
			var vehicle int
			if e.event == "reset" { // every subscriber gets it
				continue
			}
			if _, err := fmt.Sscanf(e.data, `{"vehicle_id":%d`, &vehicle); err != nil && e.event != "halt" {
				t.Error(err)
			}
			text := fmt.Sprint(vehicle)
			if e.event != "presence" {
				text += " " + e.event
			}
			got = append(got, text)
		}
		same(t, got, r.want, "%s", name)
	}
}

func TestStream_IsRecorded(t *testing.T) {
	l := newLive(t, brokertest.NewEvents(), func(c *stream.Config) { c.PerActor = 1 })
	l.follow("?vehicle_id=42&agency_id=1").awaitBegin(t)
	r := l.get(eventsPath).wants(429, "rate_limited").wantsRetryAfter("10")
	if !strings.Contains(r.body.Message, "1 stream") {
		t.Errorf("message %q", r.body.Message)
	}
	l.get(eventsPath, byClient).wants(403, "forbidden")
	lines := l.history.all()
	if len(lines) != 3 {
		t.Fatalf("entries %+v", lines)
	}
	for i, want := range []telematics.Activity{
		{Vehicle: 42, Agency: 1, Outcome: telematics.Executed},
		{Outcome: telematics.NotExecuted, Code: "rate_limited"},
		{Agency: 1, Outcome: telematics.NotExecuted, Code: "forbidden"},
	} {
		got := lines[i]
		like(t, got, logged{Action: "events.read", Vehicle: want.Vehicle, Agency: want.Agency,
			Outcome: want.Outcome, Code: want.Code}, "got")
	}
	l.history.mu.Lock()
	l.history.err = gone{}
	l.history.mu.Unlock()
	l.get(eventsPath, ofAgency(1)).wants(503, "service_unavailable")
}

func TestStream_NumberPerInstanceIsLimited(t *testing.T) {
	l := newLive(t, brokertest.NewEvents(), func(c *stream.Config) { c.Streams = 2; c.PerActor = -1 })
	first := l.follow("").awaitBegin(t)
	l.follow("").awaitBegin(t)
	l.get(eventsPath).wants(503, "service_unavailable")
	first.close()
	eventually(t, "one stream has ended", func() bool { return metric(t, l.feed.Metrics, "event_streams_open") == 1 })
	l.follow("").awaitBegin(t)
}

func TestStream_PingHasTheIDOfEventsThatTheFilterDropped(t *testing.T) {
	l := newLive(t, brokertest.NewEvents(), func(c *stream.Config) { c.PingEvery = 20 * time.Millisecond })
	s := l.follow("?vehicle_id=7").awaitBegin(t)
	l.publish(presence(42, 1))
	events := l.log.All()
	last := events[len(events)-1].ID
	eventually(t, "the ping has the ID of the filtered event", func() bool { return s.lastID() == last })
	s.mu.Lock()
	defer s.mu.Unlock()
	if ping := s.events[len(s.events)-1]; ping.comment != "ping" || ping.event != "" {
		t.Errorf("last event %+v, want a ping", ping)
	}
}

func TestStream_StallsWhileTheLogIsUnavailable(t *testing.T) {
	log := brokertest.NewEvents()
	l := newLive(t, log, func(c *stream.Config) { c.StallTimeout = time.Second })
	s := l.follow("?event=alarm").awaitBegin(t)
	log.Break(errors.New("redis is unavailable"))
	if got := s.await(t, 1)[0]; got.event != "stalled" || !strings.Contains(got.data, `"reason":"unavailable"`) {
		t.Errorf("event %+v, want stalled", got)
	}
	late := l.follow("")
	same(t, late.await(t, 1)[0].event, "stalled", "a stream that begins meanwhile")
	log.Break(nil)
	l.publish(presence(42, 1))
	same(t, s.await(t, 2)[1].event, "resumed", "event")
	var kinds []string
	for _, e := range late.await(t, 3)[1:] {
		kinds = append(kinds, e.event)
	}
	slices.Sort(kinds) // either may be sent first
	same(t, kinds, []string{"presence", "resumed"}, "the later stream continues with")
}

// lines counts the lines of a log.
type lines struct{ atomic.Int64 }

func (l *lines) Write(line []byte) (int, error) {
	l.Add(1)
	return len(line), nil
}

func TestStream_EndedFeedDoesNotStall(t *testing.T) {
	t.Parallel()
	var logged lines
	const timeout = time.Second
	t.Run("until it ends", func(t *testing.T) {
		l := newLive(t, brokertest.NewEvents(), func(c *stream.Config) {
			c.StallTimeout, c.Logger = timeout, slog.New(slog.NewTextHandler(&logged, nil))
		})
		l.follow("").awaitBegin(t)
	})
	before := logged.Load()
	time.Sleep(timeout + timeout/2)
	if n := logged.Load() - before; n > 0 {
		t.Errorf("%d lines were logged after the feed ended, want none", n)
	}
}

func TestStream_UnknownIDCausesAReset(t *testing.T) {
	log := brokertest.NewEvents()
	log.Kept = 10
	l := newLive(t, log, func(c *stream.Config) { c.Buffered = 4 })
	first := l.follow("").awaitBegin(t).lastID()
	for n := range telematics.VehicleID(30) {
		l.publish(presence(n, 1))
	}
	events := log.All()
	eventually(t, "all events are followed", func() bool {
		s := l.follow("").awaitBegin(t)
		defer s.close()
		return s.lastID() == events[len(events)-1].ID
	})
	for _, id := range []string{first, "x", "99-99", "-1"} {
		s := l.follow("", after(id))
		got := s.await(t, 1)
		if got[0].event != "reset" || got[0].id == "" || !strings.Contains(got[0].data, `"events_missing"`) {
			t.Errorf("after %q: %+v, want a reset", id, got[0])
		}
		s.close()
	}
}

func TestStream_EmptiedLogCausesAReset(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	l.publish(presence(1, 1))
	s := l.follow("", after(l.log.All()[0].ID))
	s.await(t, 1)
	l.log.Empty()
	eventually(t, "a reset arrives", func() bool {
		got, _ := s.all()
		return slices.ContainsFunc(got, func(e serverEvent) bool { return e.event == "reset" })
	})
	place := s.lastID()
	l.publish(presence(2, 1))
	eventually(t, "the stream continues", func() bool {
		got, _ := s.all()
		return strings.Contains(got[len(got)-1].data, `"vehicle_id":2`)
	})
	again := l.follow("", after(place)).await(t, 1)
	if !strings.Contains(again[len(again)-1].data, `"vehicle_id":2`) {
		t.Errorf("continued after the reset: %+v", again)
	}
}

// Readers are disconnected at random, from either instance, while events are published, and
// continue at either. Some are disconnected until only the log has the events that they miss.
func TestStream_ReconnectingReaderGetsEachEventOnce(t *testing.T) {
	const events, readers = 1000, 4
	log := brokertest.NewEvents()
	small := func(c *stream.Config) { c.Buffered = 64; c.PerActor = -1 }
	instances := []*live{newLive(t, log, small), newLive(t, log, small)}
	begin := log.All()[len(log.All())-1].ID
	var publishing, reading sync.WaitGroup
	publishing.Go(func() {
		for n := range telematics.VehicleID(events) {
			instances[0].publish(presence(n+1, 1))
			if n%16 == 0 {
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			}
		}
	})
	for range readers {
		reading.Go(func() {
			place, heard := begin, 0
			for heard < events {
				s := instances[rand.IntN(2)].follow("", after(place))
				time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
				s.close()
				got, _ := s.all()
				for _, e := range got {
					if e.event == "end" { // too slow for the buffer: the reader reconnects
						continue
					}
					heard++
					if want := fmt.Sprintf(`{"vehicle_id":%d,`, heard); e.event != "presence" || !strings.HasPrefix(e.data, want) {
						t.Errorf("after %d events: %+v, want the next one", heard-1, e)
						return
					}
				}
				if id := s.lastID(); id != "" {
					place = id
				}
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
			}
		})
	}
	publishing.Wait()
	reading.Wait()
}

func TestStream_EndsWithItsToken(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	almost := now.Add(-59 * time.Second).Unix() // within the minute of leeway
	s := l.follow("", claiming(claimSet{"exp": almost}))
	same(t, s.awaitEnd(t), "token_expired", "reason")
}

// The monotonic clock of a machine that was suspended has not counted that.
func TestStream_EndsWithItsTokenThatExpiredWhileTheMachineWasSuspended(t *testing.T) {
	var suspended atomic.Int64
	l := newLiveWith(t, brokertest.NewEvents(), func(c *httpapi.Config) {
		c.Now = func() time.Time { return now.Add(time.Duration(suspended.Load())) }
	}, func(c *stream.Config) { c.PingEvery = 10 * time.Millisecond })
	s := l.follow("").awaitBegin(t)
	suspended.Store(int64(1000 * time.Hour))
	same(t, s.awaitEnd(t), "token_expired", "reason")
}

func TestStream_EndsWhenTheKeyOfItsTokenIsWithdrawn(t *testing.T) {
	source := keyFile(t, jwks(edKey(), ecKey()))
	keys := auth.NewKeys(auth.KeysConfig{Source: source, Refresh: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = keys.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually(t, "keys are read", func() bool { return keys.Ready(ctx) == nil })
	l := newLiveWith(t, brokertest.NewEvents(), func(c *httpapi.Config) { c.Tokens = tokensWith(keys) },
		func(c *stream.Config) { c.PingEvery = 10 * time.Millisecond })
	withdrawn := l.follow("").awaitBegin(t)
	valid := l.follow("", withToken(ecKey().mint(claims(nil)))).awaitBegin(t)
	require.NoError(t, os.WriteFile(source, jwks(ecKey()), 0o600))
	same(t, withdrawn.awaitEnd(t), "token_refused", "reason")
	l.publish(presence(42, 1))
	valid.await(t, 1)
}

func TestStream_EndsBeforeShutdown(t *testing.T) {
	l := newLive(t, brokertest.NewEvents())
	s := l.follow("").awaitBegin(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A stream that does not end would delay the shutdown for the whole minute.
	assert.NoError(t, l.server.Shutdown(ctx), "Shutdown")
	same(t, s.awaitEnd(t), "stopping", "reason")
	got, _ := s.all()
	if got[len(got)-1].retry == "" || got[len(got)-1].id != "" {
		t.Errorf("last event %+v, want a retry time without an ID", got[len(got)-1])
	}
}

func TestStream_OutlivesTheTimeLimitsOfOtherAnswers(t *testing.T) {
	t.Parallel()
	const limit = time.Second // a busy machine begins the stream within it
	log := brokertest.NewEvents()
	l := newLive(t, log, func(c *stream.Config) { c.PingEvery = 20 * time.Millisecond })
	l.server = &http.Server{Handler: l.handler, ReadTimeout: limit, WriteTimeout: limit}
	l.server.RegisterOnShutdown(l.feed.End)
	l.serve(t)
	s := l.follow("").awaitBegin(t)
	for begin := time.Now(); time.Since(begin) < 3*limit/2; time.Sleep(10 * time.Millisecond) {
		if _, ended := s.all(); ended {
			t.Fatalf("the stream ended after %v", time.Since(begin))
		}
	}
	l.publish(presence(42, 1))
	s.await(t, 1)
}

// stall opens a stream and does not read it.
func (l *live) stall() net.Conn {
	l.t.Helper()
	conn := must(net.Dial("tcp", strings.TrimPrefix(l.base, "http://")))
	l.t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", eventsPath, adminToken())
	eventually(l.t, "the stream is open", func() bool { return metric(l.t, l.feed.Metrics, "event_streams_open") > 0 })
	return conn
}

// flood publishes large events until a condition holds.
func (l *live) flood(what string, holds func() bool) {
	l.t.Helper()
	padding := strings.Repeat("x", 8<<10)
	eventually(l.t, what, func() bool {
		e := presence(42, 1)
		e.Kind, e.Change = telematics.StatusEvent, &telematics.Change{
			Fields: telematics.Snapshot{telematics.OEMData: {Value: map[string]any{"x": padding}, At: now}},
		}
		l.publish(e, e, e, e)
		return holds()
	})
}

func TestStream_SubscriberThatDoesNotReadIsCutAndDelaysNoOther(t *testing.T) {
	log := brokertest.NewEvents()
	log.Kept = 1000
	l := newLive(t, log, func(c *stream.Config) { c.WriteTimeout = time.Second })
	l.stall()
	other := l.follow("").awaitBegin(t)
	l.flood("the stream is cut", func() bool { return metric(t, l.feed.Metrics, "event_streams_cut_total") == 1 })
	eventually(t, "the stream is closed", func() bool { return metric(t, l.feed.Metrics, "event_streams_open") == 1 })
	if _, ended := other.all(); ended {
		t.Error("another subscriber's stream was cut, too")
	}
}

func TestStream_SubscriberTooFarBehindGetsTooSlow(t *testing.T) {
	log := brokertest.NewEvents()
	log.Kept = 1000
	l := newLive(t, log, func(c *stream.Config) { c.Buffered = 16; c.WriteTimeout = 30 * time.Second })
	conn := l.stall()
	followed := func() int64 { return metric(t, l.feed.Metrics, "events_followed_total") }
	l.flood("enough events to fill all buffers", func() bool { return followed() > 3000 })
	s := &eventStream{}
	var reading sync.WaitGroup
	reading.Go(func() { s.readFrom(conn) })
	if reason := s.awaitEnd(t); reason != "too_slow" || metric(t, l.feed.Metrics, "event_streams_cut_total") != 1 {
		t.Errorf("reason %q, %d streams cut; want too_slow and 1", reason, metric(t, l.feed.Metrics, "event_streams_cut_total"))
	}
	_ = conn.Close()
	reading.Wait()
}

func TestStream_LogIsFollowedOnlyWithSubscribers(t *testing.T) {
	l := newLive(t, brokertest.NewEvents(), func(c *stream.Config) { c.IdleTimeout = 20 * time.Millisecond })
	for n := range telematics.VehicleID(3) {
		s := l.follow("")
		l.publish(presence(2*n+1, 1))
		if got := s.await(t, 1); !strings.Contains(got[0].data, fmt.Sprintf(`"vehicle_id":%d,`, 2*n+1)) &&
			!strings.Contains(got[0].data, fmt.Sprintf(`"vehicle_id":%d}`, 2*n+1)) {
			t.Errorf("reader %d: %+v, want its event", n, got)
		}
		place := s.lastID()
		s.close()
		eventually(t, "the feed stops following", func() bool {
			before := metric(t, l.feed.Metrics, "events_followed_total")
			l.publish(presence(2*n+2, 1))
			time.Sleep(100 * time.Millisecond) // much longer than following takes
			return metric(t, l.feed.Metrics, "events_followed_total") == before
		})
		s = l.follow("", after(place))
		if back := s.await(t, 1); !strings.Contains(back[0].data, fmt.Sprintf(`"vehicle_id":%d`, 2*n+2)) {
			t.Errorf("continued after the pause: %+v", back)
		}
		s.close()
	}
}
