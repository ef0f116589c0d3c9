package vehicles

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/telematics"
)

// EncodeSnapshot returns the JSON of a snapshot: for each field its value and the vehicle time in
// milliseconds.
func EncodeSnapshot(s telematics.Snapshot) (json.RawMessage, error) {
	w := NewJSONWriter()
	w.Add(jsontext.BeginObject)
	for field, reading := range s.All() {
		w.Add(jsontext.String(field.String()), jsontext.BeginObject, jsontext.String("v"))
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

// JSONWriter writes one JSON value, token by token. The first error is returned by Text. Writers
// are pooled, so that a value costs no more memory than its text.
type JSONWriter struct {
	text   bytes.Buffer
	tokens *jsontext.Encoder
	err    error
}

var jsonWriters = sync.Pool{New: func() any { return &JSONWriter{tokens: jsontext.NewEncoder(&bytes.Buffer{})} }}

// NewJSONWriter returns a writer of a value. Text ends its use.
func NewJSONWriter() *JSONWriter {
	w := jsonWriters.Get().(*JSONWriter)
	w.text.Reset()
	w.err = nil
	w.tokens.Reset(&w.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return w
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

// Text returns the value. The writer must not be used after it.
func (w *JSONWriter) Text() (json.RawMessage, error) {
	text, err := bytes.Clone(bytes.TrimSuffix(w.text.Bytes(), []byte("\n"))), w.err
	jsonWriters.Put(w)
	return text, err
}
