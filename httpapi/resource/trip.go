package resource

import (
	"encoding/xml"
	"math"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// Trip is a drive of a vehicle, and the booking in which it was made.
type Trip struct {
	From       string  `json:"from"`
	To         string  `json:"to"`
	DistanceKm float64 `json:"distance_km"`
	Start      Place   `json:"start"`
	End        Place   `json:"end"`
	BookingID  *int64  `json:"booking_id"` // null: none, and likewise the next two
	Reference  *string `json:"booking_reference"`
	Client     *string `json:"client"`
}

// Place is a position in degrees, WGS 84.
type Place struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Address   *string `json:"address"`
}

// NewTrip returns a trip with that of the bookings in which the vehicle was used for the longest
// part of it, and the addresses of its ends.
func NewTrip(t samples.Trip, used []rental.BookingDetails, address func(telematics.Position) *string) Trip {
	place := func(p telematics.Position) Place { return Place{p.Latitude, p.Longitude, address(p)} }
	first, last := t.Track[0], t.Track[len(t.Track)-1]
	body := Trip{
		From: Timestamp(first.LocatedAt), To: Timestamp(last.LocatedAt), DistanceKm: math.Round(t.Metres/10) / 100,
		Start: place(*first.Position), End: place(*last.Position),
	}
	var longest time.Duration
	for _, d := range used {
		begin, end := first.LocatedAt, last.LocatedAt
		if d.ActualStart.After(begin) {
			begin = d.ActualStart
		}
		if !d.ActualEnd.IsZero() && d.ActualEnd.Before(end) {
			end = d.ActualEnd
		}
		if part := end.Sub(begin); part > longest && !d.ActualStart.IsZero() {
			longest, body.BookingID, body.Reference, body.Client = part, OrNull(int64(d.ID)), OrNull(d.Reference), OrNull(d.Subject)
		}
	}
	return body
}

// NewGPX returns trips as a GPX 1.1 file (https://www.topografix.com/GPX/1/1/).
func NewGPX(trips []samples.Trip) []byte {
	type point struct {
		Latitude  float64 `xml:"lat,attr"`
		Longitude float64 `xml:"lon,attr"`
		Time      string  `xml:"time"`
	}
	type track struct {
		Name   string  `xml:"name"`
		Points []point `xml:"trkseg>trkpt"`
	}
	file := struct {
		XMLName xml.Name `xml:"http://www.topografix.com/GPX/1/1 gpx"`
		Version string   `xml:"version,attr"`
		Creator string   `xml:"creator,attr"`
		Tracks  []track  `xml:"trk"`
	}{Version: "1.1", Creator: "Motorpool"}
	for _, t := range trips {
		file.Tracks = append(file.Tracks, track{
			Name: Timestamp(t.Track[0].LocatedAt),
			Points: List(t.Track, func(b samples.Bucket) point {
				return point{b.Position.Latitude, b.Position.Longitude, Timestamp(b.LocatedAt)}
			}),
		})
	}
	text, _ := xml.MarshalIndent(file, "", " ") // numbers and times can be encoded
	return append([]byte(xml.Header), text...)
}
