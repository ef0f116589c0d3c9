// Package fleetmap encodes the markers of a whole fleet: a row for each vehicle, compressed
// row by row, so that only the compressed answer is in memory.
package fleetmap

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"hash"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// columns are the values of a row, in their order.
var columns = []string{
	"id", "agency_id", "status", "connectivity", "latitude", "longitude", "located_at", "locked", "energy_percent",
	"last_seen", "locked_at", "energy_at", "plate_number", "model", "unit", "powertrain", "charging",
	"charging_at",
}

// header precedes the rows. A status, connectivity or powertrain in a row is an index into its list
// here.
type header struct {
	Columns      []string                    `json:"columns"`
	Statuses     []telematics.VehicleStatus  `json:"statuses"`
	Connectivity []telematics.PresenceStatus `json:"connectivities"`
	Powertrains  []telematics.Powertrain     `json:"powertrains"`
}

// Encoder encodes one answer. It is not safe for concurrent use.
type Encoder struct {
	text       bytes.Buffer // compressed
	compressor *gzip.Writer
	sum        hash.Hash // of the rows
	vehicles   int
	models     []string // of all rows, each once: a row has an index into them
	places     map[string]int
}

// New begins an answer. Its error is one of encoding, as are those of Add and Close: there is none
// today.
func New() (*Encoder, error) {
	e := &Encoder{sum: fnv.New128a(), models: []string{}, places: map[string]int{}}
	compressor, err := gzip.NewWriterLevel(&e.text, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	e.compressor = compressor
	begin, err := json.Marshal(header{columns, telematics.VehicleStatuses, telematics.PresenceStatuses, telematics.Powertrains})
	if err != nil {
		return nil, err
	}
	_, err = e.compressor.Write(slices.Concat([]byte(`{"success":true,"data":`), begin[:len(begin)-1], []byte(`,"vehicles":[`)))
	return e, err
}

// Add adds the row of a vehicle. Its error is that of New.
func (e *Encoder) Add(m telematics.Marker) error {
	var latitude, longitude, energy any
	if m.Position != nil {
		latitude, longitude = round(m.Position.Latitude, 1e5), round(m.Position.Longitude, 1e5)
	}
	if m.Energy != nil {
		energy = round(*m.Energy, 10)
	}
	row, err := json.Marshal([]any{
		m.ID, m.Agency, slices.Index(telematics.VehicleStatuses, m.Status), slices.Index(telematics.PresenceStatuses, m.Connectivity),
		latitude, longitude, seconds(m.LocatedAt), bit(m.Locked), energy, seconds(m.LastSeen), seconds(m.LockedAt), seconds(m.EnergyAt),
		text(m.Plate), e.place(strings.TrimSpace(m.Brand + " " + m.Model)), text(string(m.Unit)),
		slices.Index(telematics.Powertrains, m.Powertrain), bit(m.Charging), seconds(m.ChargingAt),
	})
	if err != nil {
		return err
	}
	if e.vehicles++; e.vehicles > 1 {
		row = slices.Insert(row, 0, ',')
	}
	_, _ = e.sum.Write(row) // never fails
	_, err = e.compressor.Write(row)
	return err
}

// place returns the index of a model in the list that follows the rows. The entity tag has each
// when it is first named.
func (e *Encoder) place(model string) int {
	at, ok := e.places[model]
	if !ok {
		at = len(e.models)
		e.places[model], e.models = at, append(e.models, model)
		_, _ = e.sum.Write([]byte(model)) // never fails
	}
	return at
}

// round returns n, rounded to a multiple of 1/of.
func round(n, of float64) float64 { return math.Round(n*of) / of }

// text returns null for an empty text.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// bit returns 1, 0, or null.
func bit(is *bool) any {
	switch {
	case is == nil:
		return nil
	case *is:
		return 1
	}
	return 0
}

// seconds returns seconds since 1970, or null.
func seconds(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Unix()
}

// Vehicles returns the number of rows.
func (e *Encoder) Vehicles() int { return e.vehicles }

// ETag returns the entity tag of the rows so far. It is weak: it does not depend on the compression
// and the envelope.
func (e *Encoder) ETag() string { return `W/"` + hex.EncodeToString(e.sum.Sum(nil)) + `"` }

// envelope follows the rows and the models.
type envelope struct {
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	Timestamp string `json:"timestamp"`
}

// Close completes the answer, and returns it, compressed with gzip. Its error is that of New.
func (e *Encoder) Close(message, requestID, timestamp string) ([]byte, error) {
	end, err := json.Marshal(envelope{message, requestID, timestamp})
	if err != nil {
		return nil, err
	}
	models, err := json.Marshal(e.models)
	if err != nil {
		return nil, err
	}
	if _, err := e.compressor.Write(slices.Concat([]byte(`],"models":`), models, []byte(`},`), end[1:])); err != nil {
		return nil, err
	}
	if err := e.compressor.Close(); err != nil {
		return nil, err
	}
	return e.text.Bytes(), nil
}

// Expand writes an answer of Close, decompressed. Its error is the writer's.
func Expand(w io.Writer, compressed []byte) error {
	expanded, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, expanded) //nolint:gosec // our own data, streamed
	return err
}
