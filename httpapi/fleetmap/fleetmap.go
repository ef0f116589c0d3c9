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
	"strconv"
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
	row        []byte
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
	row := e.row[:0]
	if e.vehicles > 0 {
		row = append(row, ',')
	}
	e.vehicles++
	row = append(row, '[')
	row = strconv.AppendInt(row, int64(m.ID), 10)
	row = appendInt(row, int64(m.Agency))
	row = appendInt(row, int64(slices.Index(telematics.VehicleStatuses, m.Status)))
	row = appendInt(row, int64(slices.Index(telematics.PresenceStatuses, m.Connectivity)))
	if m.Position != nil {
		row = appendNumber(row, m.Position.Latitude, 1e5)
		row = appendNumber(row, m.Position.Longitude, 1e5)
	} else {
		row = append(row, ",null,null"...)
	}
	row = appendTime(row, m.LocatedAt)
	row = appendBool(row, m.Locked)
	if m.Energy != nil {
		row = appendNumber(row, *m.Energy, 10)
	} else {
		row = append(row, ",null"...)
	}
	row = appendTime(row, m.LastSeen)
	row = appendTime(row, m.LockedAt)
	row = appendTime(row, m.EnergyAt)
	row, err := appendText(row, m.Plate)
	if err != nil {
		return err
	}
	row = appendInt(row, int64(e.place(strings.TrimSpace(m.Brand+" "+m.Model))))
	if row, err = appendText(row, string(m.Unit)); err != nil {
		return err
	}
	row = appendInt(row, int64(slices.Index(telematics.Powertrains, m.Powertrain)))
	row = append(appendTime(appendBool(row, m.Charging), m.ChargingAt), ']')
	e.row = row
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

// appendText appends a text, or null for an empty one.
func appendText(row []byte, text string) ([]byte, error) {
	if text == "" {
		return append(row, ",null"...), nil
	}
	encoded, err := json.Marshal(text)
	return append(append(row, ','), encoded...), err
}

// appendBool appends 1, 0, or null.
func appendBool(row []byte, is *bool) []byte {
	switch {
	case is == nil:
		return append(row, ",null"...)
	case *is:
		return append(row, ",1"...)
	default:
		return append(row, ",0"...)
	}
}

func appendInt(row []byte, n int64) []byte { return strconv.AppendInt(append(row, ','), n, 10) }

// appendNumber appends n, rounded to a multiple of 1/of.
func appendNumber(row []byte, n, of float64) []byte {
	return strconv.AppendFloat(append(row, ','), math.Round(n*of)/of, 'f', -1, 64)
}

// appendTime appends seconds since 1970, or null.
func appendTime(row []byte, at time.Time) []byte {
	if at.IsZero() {
		return append(row, ",null"...)
	}
	return appendInt(row, at.Unix())
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
	text, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, text) //nolint:gosec // our own data, streamed
	return err
}
