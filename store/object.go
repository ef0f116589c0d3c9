package store

import (
	"strconv"

	"motorpool/telematics"
)

// object builds the text of a JSON object, member by member, for what is written with each command. What is optional is left out where
// it is zero.
type object struct{ text []byte }

func newObject(size int) *object { return &object{append(make([]byte, 0, size), '{')} }

// member begins one. Names are constants of this program.
func (o *object) member(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(append(append(o.text, '"'), name...), `":`...)
}

func (o *object) number(name string, v int64) {
	o.member(name)
	o.text = strconv.AppendInt(o.text, v, 10)
}

func (o *object) optionalNumber(name string, v int64) {
	if v != 0 {
		o.number(name, v)
	}
}

// value adds what JSON can say: a text, or what is built of texts and numbers.
func (o *object) value(name string, v any) {
	o.member(name)
	o.text, _ = telematics.AppendValue(o.text, v) // fails for other values only
}

func (o *object) optionalText(name, v string) {
	if v != "" {
		o.value(name, v)
	}
}

// optionalRaw adds what is JSON already.
func (o *object) optionalRaw(name string, v []byte) {
	if len(v) > 0 {
		o.member(name)
		o.text = append(o.text, v...)
	}
}

func (o *object) optionalTrue(name string, v bool) {
	if v {
		o.member(name)
		o.text = append(o.text, "true"...)
	}
}

// end returns the text of the whole object.
func (o *object) end() []byte { return append(o.text, '}') }
