package places

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

func TestBook_AddressOfAnOwnStationComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{
			stations: []telematics.Station{
				{ID: 1, AgencyID: 1, Address: "Station 1", Latitude: munich.Latitude, Longitude: munich.Longitude},
				{ID: 2, AgencyID: 1, Address: "Station 2", Latitude: north(100).Latitude, Longitude: munich.Longitude},
				{ID: 3, AgencyID: 2, Address: "Of others", Latitude: north(1000).Latitude, Longitude: munich.Longitude},
				{ID: 4, AgencyID: 2, Latitude: north(2000).Latitude, Longitude: munich.Longitude},
			},
			addresses: []telematics.Address{
				{ID: 1, Position: north(10), Text: "At the station"},
				{ID: 2, Position: north(500), Text: "Far from it"},
				{ID: 3, Position: north(1990), Text: "Where a station has no address"},
				{ID: 4, Position: north(3000)},
			},
		}
		i := start(t, r, &geocoder{say: street}, slog.New(slog.DiscardHandler))
		synctest.Wait()
		for _, c := range []struct {
			name    string
			agency  telematics.AgencyID
			at      float64 // metres north
			address string
			knows   bool
		}{
			{"at a station, whatever the geocoder returned", 1, 20, "Station 1", true},
			{"near two stations", 1, 60, "Station 2", true},
			{"149 m from a station", 1, 249, "Station 2", true},
			{"151 m from a station", 1, 251, "", false},
			{"at another agency's station", 1, 1000, "", false},
			{"at a station without an address", 2, 2000, "Where a station has no address", true},
			{"near a requested address", 1, 460, "Far from it", true},
			{"49 m from a requested address", 1, 549, "Far from it", true},
			{"51 m from a requested address", 1, 551, "", false},
			{"at a place without an address", 1, 3010, "", true},
			{"an agency without stations", 7, 20, "At the station", true},
		} {
			if got, knows := i.book.Address(c.agency, north(c.at)), i.book.Knows(c.agency, north(c.at)); got != c.address || knows != c.knows {
				t.Errorf("%s: address %q, known %v; want %q, %v", c.name, got, knows, c.address, c.knows)
			}
		}
	})
}

func TestBook_WithoutAGeocoderHasOnlyStations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{
			stations:  []telematics.Station{{ID: 1, AgencyID: 1, Address: "Station 1", Latitude: munich.Latitude, Longitude: munich.Longitude}},
			addresses: []telematics.Address{{ID: 1, Position: north(500), Text: "From when there was one"}},
		}
		i := start(t, r, nil, slog.New(slog.DiscardHandler))
		synctest.Wait()
		if got := i.book.Address(1, munich); got != "Station 1" {
			t.Errorf("at the station: %q, want its address", got)
		}
		if got := i.book.Address(1, north(500)); got != "" {
			t.Errorf("elsewhere: %q, want none", got)
		}
	})
}

func TestBook_IsEmptyWhileTheRecordIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := &record{err: errBroken, stations: []telematics.Station{{AgencyID: 1, Address: "Station 1", Latitude: munich.Latitude, Longitude: munich.Longitude}}}
		i := start(t, r, nil, slog.New(log))
		time.Sleep(20 * time.Second)
		if got := i.book.Address(1, munich); got != "" {
			t.Errorf("an empty book has the address %q", got)
		}
		r.set(func() { r.err = nil })
		time.Sleep(2 * loadAgain)
		if got := i.book.Address(1, munich); got != "Station 1" {
			t.Errorf("after the record is available again: %q", got)
		}
		log.are(t, "addresses not refreshed, retrying: record", "addresses refreshed again: record")
	})
}

func TestBook_HasANewStationAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		i := start(t, r, nil, slog.New(slog.DiscardHandler))
		synctest.Wait()
		r.set(func() {
			r.stations = []telematics.Station{{AgencyID: 1, Address: "Station 1", Latitude: munich.Latitude, Longitude: munich.Longitude}}
		})
		time.Sleep(stationsEvery + time.Second)
		if got := i.book.Address(1, munich); got != "Station 1" {
			t.Errorf("after a minute: %q, want the new station's address", got)
		}
	})
}

func TestBook_FindsPlacesAllOverTheGlobe(t *testing.T) {
	for _, at := range []telematics.Position{{}, munich, {Latitude: 90}, {Latitude: -90, Longitude: 55}, {Latitude: 12, Longitude: 180}, {Latitude: -33.9, Longitude: -179.99999}} {
		k := addressGrid{}
		k.add(telematics.Address{ID: 1, Position: at, Text: "here"})
		for _, d := range []struct {
			degrees float64 // of latitude
			knows   bool
		}{{0, true}, {49.0 / 111_195.08, true}, {-49.0 / 111_195.08, true}, {51.0 / 111_195.08, false}, {-51.0 / 111_195.08, false}} {
			p := telematics.Position{Latitude: at.Latitude + d.degrees, Longitude: at.Longitude}
			if p.Latitude > 90 || p.Latitude < -90 {
				continue
			}
			if _, knows := k.nearest(p); knows != d.knows {
				t.Errorf("a place at %v, seen from %v: found %v", p, at, knows)
			}
		}
	}
	k := addressGrid{}
	k.add(telematics.Address{Position: telematics.Position{Longitude: 179.9998}, Text: "west"})
	if a, _ := k.nearest(telematics.Position{Longitude: -179.9999}); a.Text != "west" {
		t.Error("an address across the date line was not found")
	}
}

func BenchmarkAddress(b *testing.B) {
	book := NewBook(BookConfig{})
	book.stations, book.known = map[telematics.AgencyID][]telematics.Station{}, addressGrid{}
	for i := range 500 {
		book.stations[1] = append(book.stations[1], telematics.Station{Address: "a", Latitude: 47 + float64(i)/100, Longitude: 11})
	}
	for i := range keepAtMost {
		book.known.add(telematics.Address{ID: int64(i), Position: telematics.Position{Latitude: 40 + float64(i%2000)/1000, Longitude: float64(i/2000) / 1000}, Text: "a"})
	}
	b.ResetTimer()
	for i := range b.N {
		book.Address(1, telematics.Position{Latitude: 40 + float64(i%2000)/1000, Longitude: 0.05})
	}
}
