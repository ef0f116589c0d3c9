package vehicles

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/telematics"
)

// EncodeSnapshot returns the JSON of a snapshot: for each field its value and the vehicle time in
// milliseconds.
func EncodeSnapshot(s telematics.Snapshot) (json.RawMessage, error) {
	w := NewJSONWriter(64 * len(s))
	w.Add(jsontext.BeginObject)
	for _, field := range telematics.Fields {
		reading, ok := s[field]
		if !ok {
			continue
		}
		w.Add(jsontext.String(string(field)), jsontext.BeginObject, jsontext.String("v"))
		w.AddValue(reading.Value)
		w.Add(jsontext.String("at"), jsontext.Int(reading.At.UnixMilli()))
		if reading.Once {
			w.Add(jsontext.String("once"), jsontext.True)
		}
		if reading.Undated {
			w.Add(jsontext.String("undated"), jsontext.True)
		}
		w.Add(jsontext.EndObject)
	}
	w.Add(jsontext.EndObject)
	return w.Text()
}

// JSONWriter writes one JSON value, token by token. The first error is returned by Text.
type JSONWriter struct {
	text   *bytes.Buffer
	tokens *jsontext.Encoder
	err    error
}

// NewJSONWriter returns a writer of a value that takes about size bytes.
func NewJSONWriter(size int) *JSONWriter {
	text := bytes.NewBuffer(make([]byte, 0, size+16))
	return &JSONWriter{text: text, tokens: jsontext.NewEncoder(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// Add writes tokens.
func (w *JSONWriter) Add(tokens ...jsontext.Token) {
	for _, token := range tokens {
		if w.err == nil {
			w.err = w.tokens.WriteToken(token)
		}
	}
}

// AddValue writes the value of a reading.
func (w *JSONWriter) AddValue(value any) {
	switch value := value.(type) {
	case nil:
		w.Add(jsontext.Null)
	case string:
		w.Add(jsontext.String(value))
	case bool:
		w.Add(jsontext.Bool(value))
	case float64:
		w.Add(jsontext.Float(value))
	default: // instants, lists and objects
		text, err := json.Marshal(value)
		if w.err == nil {
			w.err = err
		}
		if w.err == nil {
			w.err = w.tokens.WriteValue(text)
		}
	}
}

// Text returns the value.
func (w *JSONWriter) Text() (json.RawMessage, error) {
	return bytes.TrimSuffix(w.text.Bytes(), []byte("\n")), w.err
}
