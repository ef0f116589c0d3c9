package places

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func station(agency telematics.AgencyID, address string, at telematics.Position) telematics.Station {
	return telematics.Station{AgencyID: agency, Address: address, Latitude: at.Latitude, Longitude: at.Longitude}
}

// read reads the address of each position, as often as it takes until the geocoder was asked.
func read(b *Book, d time.Duration, at ...telematics.Position) (addresses []string) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		addresses = nil
		for _, p := range at {
			addresses = append(addresses, b.Address(1, p, true))
		}
	}
	return addresses
}

func TestBook_AddressOfAnOwnStationComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{stations: []telematics.Station{
			station(1, "Station 1", munich),
			station(1, "Station 2", north(100)), station(2, "Of others", north(1000)), station(2, "", north(2000)),
		}}
		g := &geocoder{say: street}
		b, _ := start(t, w, g, quiet)
		synctest.Wait()
		for _, c := range []struct {
			name    string
			agency  telematics.AgencyID
			at      float64 // metres north
			address string
		}{
			{"at a station", 1, 20, "Station 1"},
			{"near two stations", 1, 60, "Station 2"},
			{"149 m from a station", 1, 249, "Station 2"},
			{"151 m from a station", 1, 251, ""},
			{"at another agency's station", 1, 1000, ""},
			{"at a station without an address", 2, 2000, ""},
			{"an agency without stations", 7, 20, ""},
		} {
			assert.Equal(t, b.Address(c.agency, north(c.at), true), c.address, "%s: address", c.name)
		}
		time.Sleep(time.Minute)
		if n := len(g.requests()); n != 4 {
			t.Errorf("%d requests, want one for each place without a station", n)
		}
	})
}

func TestBook_WithoutAGeocoderHasOnlyStations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := start(t, &world{stations: []telematics.Station{station(1, "Station 1", munich)}}, nil, quiet)
		if got := read(b, time.Minute, munich, north(500)); got[0] != "Station 1" || got[1] != "" {
			t.Errorf("addresses %q, want that of the station alone", got)
		}
	})
}

func TestBook_IsEmptyWhileStationsAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		w, g := &world{err: errBroken, stations: []telematics.Station{station(1, "Station 1", munich)}}, &geocoder{say: street}
		b, _ := start(t, w, g, slog.New(log))
		if got := read(b, 20*time.Second, munich, north(500)); got[0] != "" || len(g.requests()) != 0 {
			t.Errorf("addresses %q, %d requests", got, len(g.requests()))
		}
		w.set(func() { w.err = nil })
		time.Sleep(2 * loadAgain)
		assert.Equal(t, b.Address(1, munich, true), "Station 1", "after stations were read")
		log.are(t, "outage began, retrying: addresses of stations not read", "outage ended: addresses of stations not read")
		w.set(func() { w.stations = append(w.stations, station(1, "New", north(1000))) })
		time.Sleep(stationsEvery + time.Second)
		assert.Equal(t, b.Address(1, north(1000), true), "New", "a minute after a station was added")
	})
}

// However many cars stand at a place, and however often they are read, it is asked for once, and
// the answer counts for 30 days.
func TestBook_APlaceIsRequestedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: func(p telematics.Position) (string, error) { return fmt.Sprintf("%.0f m", munich.Metres(p)), nil }}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		for _, address := range read(b, time.Minute, munich, north(5), north(10), north(-10)) {
			if address != "0 m" {
				t.Errorf("address %q, want that of the place", address)
			}
		}
		assert.Equal(t, b.Address(1, north(60), false), "", "60 m away")
		time.Sleep(time.Minute)
		if n := len(g.requests()); n != 1 || testutil.ToFloat64(b.requests.WithLabelValues("found")) != 1 {
			t.Errorf("%d requests, want 1: none for a vehicle that moves", n)
		}
		if got := read(b, time.Minute, north(60)); got[0] != "60 m" {
			t.Errorf("address %q, want that of the new place", got)
		}
		time.Sleep(keepFor)
		assert.Equal(t, b.Address(1, munich, true), "", "after 30 days")
		if got := read(b, time.Minute, munich); got[0] != "0 m" || len(g.requests()) != 3 {
			t.Errorf("address %q, %d requests; want it to be asked for again", got, len(g.requests()))
		}
	})
}

func TestBook_KeepsThatAPlaceHasNoAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: func(telematics.Position) (string, error) { return "", nil }}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		if got := read(b, time.Hour, munich); got[0] != "" || len(g.requests()) != 1 {
			t.Errorf("address %q, %d requests; want none, 1", got, len(g.requests()))
		}
		assert.Equal(t, testutil.ToFloat64(b.requests.WithLabelValues("none")), 1, "requests without an address are counted")
	})
}

func TestBook_InstancesTogetherRequestOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := &world{}, &geocoder{say: street, takes: 300 * time.Millisecond}
		one, _ := start(t, w, g, quiet)
		two, _ := start(t, w, g, quiet)
		synctest.Wait()
		for range 120 {
			for _, at := range apart(30) {
				one.Address(1, at, true)
				two.Address(1, at, true)
			}
			time.Sleep(time.Second)
		}
		asked := g.requests()
		assert.Equal(t, len(asked), 60, "requests of two instances for 30 places")
		for i := 1; i < len(asked); i++ {
			if between := asked[i].Sub(asked[i-1]); between < time.Second {
				t.Errorf("request %d was sent %v after the one before", i+1, between)
			}
		}
	})
}

func TestBook_RequestsNothingThatIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := &world{}, &geocoder{say: street}
		b, _ := start(t, w, g, quiet)
		synctest.Wait()
		w.set(func() { w.err = errBroken })
		if read(b, time.Minute, munich); len(g.requests()) != 0 {
			t.Errorf("%d requests while they cannot be counted", len(g.requests()))
		}
		w.set(func() { w.err = nil })
		if got := read(b, time.Minute, munich); got[0] == "" {
			t.Error("no address when they can be counted again")
		}
	})
}

func TestBook_BacksOffFromAFailingGeocoder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		g := &geocoder{say: func(telematics.Position) (string, error) { return "", errBroken }}
		b, _ := start(t, &world{}, g, slog.New(log))
		synctest.Wait()
		read(b, 3*time.Hour, apart(3)...)
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
		if got := read(b, maxBackOff+time.Minute, munich); got[0] == "" {
			t.Error("no address when the geocoder works again")
		}
		log.are(t, "outage began, retrying: geocoder failed", "outage ended: geocoder failed")
	})
}

func TestBook_ObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: func(telematics.Position) (string, error) { return "", busy(30 * time.Minute) }}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		if read(b, 25*time.Minute, apart(3)...); len(g.requests()) != 1 {
			t.Errorf("%d requests in 25 minutes, want 1", len(g.requests()))
		}
		if read(b, 10*time.Minute, apart(3)...); len(g.requests()) != 2 {
			t.Errorf("%d requests in 35 minutes, want 2", len(g.requests()))
		}
	})
}

func TestBook_FailingPlaceDoesNotDelayOthersForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: func(p telematics.Position) (string, error) {
			if p == rounded(munich) {
				return "", errBroken
			}
			return "elsewhere", nil
		}}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		for i, address := range read(b, 6*time.Hour, apart(6)...) {
			assert.Equal(t, address, map[bool]string{true: "", false: "elsewhere"}[i == 0], "place %d has the address", i)
		}
	})
}

func TestBook_APlaceThatIsReadOftenDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: func(p telematics.Position) (string, error) {
			if p == rounded(munich) {
				return "", errBroken
			}
			return "elsewhere", nil
		}}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		for range 2 * queueSize {
			b.Address(1, munich, true)
		}
		b.Address(1, north(500), true)
		time.Sleep(time.Minute)
		assert.Equal(t, b.Address(1, north(500), true), "elsewhere", "a minute after the other place was read, the address")
	})
}

func TestBook_SlowGeocoderDelaysNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &geocoder{say: street, takes: time.Hour}
		b, _ := start(t, &world{}, g, quiet)
		synctest.Wait()
		began := time.Now()
		for range 10 * queueSize {
			for _, at := range apart(30) {
				b.Address(1, at, true)
			}
		}
		assert.Equal(t, time.Since(began), 0, "reads waited")
		time.Sleep(time.Second)
		if len(g.requests()) == 0 {
			t.Error("no request was sent")
		}
	})
}

// A cell has the size that openapi.yaml promises of an address, everywhere on the globe.
func TestCell_IsSmallerThan50Metres(t *testing.T) {
	for _, latitude := range []float64{0, 48.1, -33.9, 89.9} {
		p := telematics.Position{Latitude: latitude, Longitude: 179.9}
		q := telematics.Position{Latitude: latitude + cellSize, Longitude: 179.9 + cellSize}
		if d := p.Metres(q); d >= 50 {
			t.Errorf("at %v° the corners of a cell are %.1f m apart", latitude, d)
		}
	}
}
