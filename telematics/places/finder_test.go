package places

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/telematics"
)

// lines collects log messages.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "source" {
			l.said = append(l.said, r.Message+": "+a.Value.String())
		}
		return true
	})
	return nil
}

func (l *lines) are(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(want)
	if said := slices.Sorted(slices.Values(l.said)); !slices.Equal(said, want) {
		t.Errorf("logged %q, want %q", said, want)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func parked(at ...telematics.Position) []telematics.Parked {
	cars := make([]telematics.Parked, len(at))
	for i, p := range at {
		cars[i] = telematics.Parked{Agency: 1, Position: p, Off: true}
	}
	return cars
}

// apart returns n positions that are 100 m apart.
func apart(n int) []telematics.Position {
	var at []telematics.Position
	for i := range n {
		at = append(at, north(float64(100*i)))
	}
	return at
}

// polite checks that each request follows the previous answer by at least a second, one at a time.
func (g *geocoder) polite(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.max > 1 {
		t.Errorf("%d concurrent requests", g.max)
	}
	for i := 1; i < len(g.asked); i++ {
		if between := g.asked[i].Sub(g.ended[i-1]); between < time.Second {
			t.Errorf("request %d was sent %v after the previous answer, want at least 1 s", i+1, between)
		}
	}
}

func TestFinder_RequestsAPlaceOnceForAllInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(munich)}, &geocoder{say: street, takes: 100 * time.Millisecond}
		one, two := start(t, r, g, quiet), start(t, r, g, quiet)
		time.Sleep(10 * time.Minute)
		for _, i := range []*instance{one, two} {
			if got := i.book.Address(1, munich); got != "Marienplatz 1, München" {
				t.Errorf("an instance has the address %q", got)
			}
		}
		if n := len(g.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		if asked := testutil.ToFloat64(one.finder.metrics.found) + testutil.ToFloat64(two.finder.metrics.found); asked != 1 {
			t.Errorf("%v found addresses counted, want 1", asked)
		}
	})
}

func TestFinder_InstancesTogetherRequestOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(apart(60)...)}, &geocoder{say: street, takes: 300 * time.Millisecond}
		instances := []*instance{start(t, r, g, quiet), start(t, r, g, quiet), start(t, r, g, quiet)}
		time.Sleep(20*time.Second + 150*time.Millisecond) // in the middle of a request
		instances[0].stop()
		time.Sleep(5 * time.Second)
		instances[1].stop()
		time.Sleep(5 * time.Minute)
		g.polite(t)
		if n := len(g.requests()); n < 60 || n > 62 { // interrupted requests are repeated
			t.Errorf("%d requests for 60 places, want 60 to 62", n)
		}
		for _, at := range apart(60) {
			if instances[2].book.Address(1, at) == "" {
				t.Errorf("no address at %v", at)
			}
		}
	})
}

func TestFinder_LeaseOfADeadHolderExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(munich)}, &geocoder{say: street}
		if _, taken, _ := r.AcquireLease(t.Context(), [16]byte{1}, hold); !taken {
			t.Fatal("the lease was not acquired")
		}
		i := start(t, r, g, quiet)
		time.Sleep(hold - time.Second)
		if len(g.requests()) != 0 {
			t.Error("a request was sent without the lease")
		}
		time.Sleep(3 * time.Second)
		if i.book.Address(1, munich) == "" {
			t.Error("no instance acquired the expired lease")
		}
	})
}

func TestFinder_WithoutItsLeaseRequestsAndStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(apart(5)...)}, &geocoder{say: street, takes: 5 * time.Second}
		start(t, r, g, quiet)
		time.Sleep(8 * time.Second) // the first or second request is in flight
		before := len(g.requests())
		r.set(func() { r.holder, r.freeAt, r.addresses = uuid.New(), time.Now().Add(time.Minute), nil })
		time.Sleep(50 * time.Second)
		if after := len(g.requests()); before == 0 || after != before {
			t.Errorf("%d requests before the lease was lost, %d after; want no further one", before, after)
		}
		r.set(func() {
			if len(r.addresses) > 0 {
				t.Errorf("stored without the lease: %v", r.addresses)
			}
		})
	})
}

func TestFinder_AfterADelayAcquiresANewLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(apart(3)...), slow: hold - askFor}, &geocoder{say: street}
		start(t, r, g, quiet)
		time.Sleep(time.Minute)
		r.set(func() {
			if once := slices.Compact(slices.Clone(r.keptIn)); len(once) != 3 || len(r.keptIn) != 3 {
				t.Errorf("addresses were stored in the leases %v, want three different ones", r.keptIn)
			}
		})
	})
}

func TestFinder_NearbyVehiclesShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lot []telematics.Position
		for i := range 10 {
			lot = append(lot, north(float64(2*i)))
		}
		r, g := &record{parked: parked(lot...)}, &geocoder{say: street}
		i := start(t, r, g, quiet)
		time.Sleep(time.Minute)
		if n := len(g.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		for _, at := range lot {
			if i.book.Address(1, at) == "" {
				t.Errorf("no address at %v", at)
			}
		}
	})
}

func TestFinder_VehicleThatMoved50MetresHasNoAddressUntilItsNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(munich)}, &geocoder{say: func(p telematics.Position) (string, error) {
			return fmt.Sprintf("%.0f m", munich.Metres(p)), nil
		}}
		i := start(t, r, g, quiet)
		time.Sleep(time.Minute)
		r.set(func() { r.parked = parked(north(40)) })
		time.Sleep(time.Minute)
		if got, n := i.book.Address(1, north(40)), len(g.requests()); got != "0 m" || n != 1 {
			t.Errorf("moved by 40 m: address %q, %d requests; want the old one, 1", got, n)
		}
		if got := i.book.Address(1, north(60)); got != "" {
			t.Errorf("moved by 60 m, before the request: address %q, want none", got)
		}
		r.set(func() { r.parked = parked(north(60)) })
		time.Sleep(time.Minute)
		if got, n := i.book.Address(1, north(60)), len(g.requests()); got != "60 m" || n != 2 {
			t.Errorf("moved by 60 m: address %q, %d requests; want the new one, 2", got, n)
		}
		r.set(func() { r.parked = parked(munich) })
		time.Sleep(time.Minute)
		if got, n := i.book.Address(1, munich), len(g.requests()); got != "0 m" || n != 2 {
			t.Errorf("moved back: address %q, %d requests; want the first one, 2", got, n)
		}
	})
}

func TestFinder_AStationsAddressIsNotRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{
			parked:   parked(north(149), north(151)),
			stations: []telematics.Station{{AgencyID: 1, Address: "Station 1", Latitude: munich.Latitude, Longitude: munich.Longitude}},
		}
		g := &geocoder{say: street}
		start(t, r, g, quiet)
		time.Sleep(time.Minute)
		if asked := g.places(); len(asked) != 1 || asked[0] != rounded(north(151)) {
			t.Errorf("requested %v, want only the place without a station", asked)
		}
	})
}

func TestFinder_StoresThatAPlaceHasNoAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(munich)}, &geocoder{say: func(telematics.Position) (string, error) { return "", nil }}
		i := start(t, r, g, quiet)
		time.Sleep(time.Hour)
		if n := len(g.requests()); n != 1 || i.book.Address(1, munich) != "" {
			t.Errorf("%d requests, address %q; want 1, none", n, i.book.Address(1, munich))
		}
		if none, failed := testutil.ToFloat64(i.finder.metrics.none), testutil.ToFloat64(i.finder.metrics.failed); none != 1 || failed != 0 {
			t.Errorf("%v without an address, %v failed", none, failed)
		}
	})
}

func TestFinder_RequestsPlacesOfStayingVehiclesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(apart(8)...)}, &geocoder{say: street}
		for i := range r.parked {
			r.parked[i].Off = i >= 5
		}
		start(t, r, g, quiet)
		time.Sleep(time.Minute)
		for i, at := range g.places() {
			if stays := at.Metres(north(600)) < 101; stays != (i < 3) {
				t.Errorf("request %d is for %v, want vehicles that stay first", i+1, at)
			}
		}
	})
}

func TestFinder_AllInstancesBackOffFromAFailingGeocoder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r, g := &record{parked: parked(apart(3)...)}, &geocoder{say: func(telematics.Position) (string, error) { return "", errBroken }}
		start(t, r, g, slog.New(log))
		time.Sleep(3 * time.Hour)
		asked := g.requests()
		if n := len(asked); n < 20 || n > 27 { // 5 s, 10 s, … 10 min
			t.Errorf("%d requests in three hours, want 20 to 27", n)
		}
		for i := 1; i < len(asked); i++ {
			if wait := asked[i].Sub(asked[i-1]); wait < putOff(i, nil) {
				t.Errorf("request %d after %v, want at least %v", i+1, wait, putOff(i, nil))
			}
		}
		g.mu.Lock()
		g.say = street
		g.mu.Unlock()
		time.Sleep(maxBackOff + time.Minute)
		log.are(t, "addresses not refreshed, retrying: geocoder", "addresses refreshed again: geocoder")
		r.set(func() {
			if r.failures != 0 {
				t.Errorf("%d failures are recorded, want none", r.failures)
			}
		})
	})
}

func TestFinder_AllInstancesObeyRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(apart(3)...)}, &geocoder{say: func(telematics.Position) (string, error) { return "", busy(30 * time.Minute) }}
		one := start(t, r, g, quiet)
		start(t, r, g, quiet)
		time.Sleep(10 * time.Minute)
		one.stop()
		start(t, r, g, quiet) // a new instance waits, too
		time.Sleep(15 * time.Minute)
		if n := len(g.requests()); n != 1 {
			t.Errorf("%d requests in 25 minutes, want 1", n)
		}
		time.Sleep(10 * time.Minute)
		if n := len(g.requests()); n != 2 {
			t.Errorf("%d requests in 35 minutes, want 2", n)
		}
	})
}

func TestFinder_FailingPlaceDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{parked: parked(apart(6)...)}
		g := &geocoder{say: func(p telematics.Position) (string, error) {
			if p == rounded(munich) {
				return "", errBroken
			}
			return "elsewhere", nil
		}}
		i := start(t, r, g, quiet)
		time.Sleep(6 * time.Hour)
		for _, at := range apart(6)[1:] {
			if i.book.Address(1, at) != "elsewhere" {
				t.Errorf("no address at %v", at)
			}
		}
	})
}

func TestFinder_SlowGeocoderDelaysNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := &record{parked: parked(munich)}, &geocoder{say: street, takes: time.Hour}
		i := start(t, r, g, quiet)
		for range 30 {
			before := time.Now()
			if got := i.book.Address(1, munich); got != "" {
				t.Errorf("address %q before the answer", got)
			}
			if waited := time.Since(before); waited != 0 {
				t.Errorf("a read waited %v, want 0", waited)
			}
			time.Sleep(time.Second)
		}
		if n := len(g.requests()); n == 0 {
			t.Error("no request was sent")
		}
		g.polite(t)
	})
}

func TestFinder_AnUnavailableRecordIsLoggedOnceAndNothingIsRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r, g := &record{parked: parked(munich)}, &geocoder{say: street}
		i := start(t, r, g, slog.New(log))
		r.set(func() { r.err = errBroken })
		time.Sleep(time.Minute)
		if n := len(g.requests()); n > 1 {
			t.Errorf("%d requests without the record, want at most 1", n)
		}
		r.set(func() { r.err = nil })
		time.Sleep(time.Minute)
		if i.book.Address(1, munich) == "" {
			t.Error("no address after the record is available again")
		}
		log.are(t, "addresses not refreshed, retrying: lease", "addresses refreshed again: lease",
			"addresses not refreshed, retrying: record", "addresses refreshed again: record")
	})
}
