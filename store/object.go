package store

import (
	"strconv"

	"motorpool/telematics"
)

// object builds the text of a JSON object, member by member, for what is written with each command. What is optional is left out where
// it is zero.
type object struct{ json []byte }

func newObject(size int) *object { return &object{append(make([]byte, 0, size), '{')} }

// member begins one. Names are constants of this program.
func (o *object) member(name string) {
	if o.json[len(o.json)-1] != '{' {
		o.json = append(o.json, ',')
	}
	o.json = append(append(append(o.json, '"'), name...), `":`...)
}

func (o *object) number(name string, v int64) {
	o.member(name)
	o.json = strconv.AppendInt(o.json, v, 10)
}

func (o *object) optionalNumber(name string, v int64) {
	if v != 0 {
		o.number(name, v)
	}
}

func (o *object) text(name, v string) {
	o.member(name)
	o.json = telematics.AppendText(o.json, v)
}

// value adds what is built of texts and numbers.
func (o *object) value(name string, v any) {
	o.member(name)
	o.json, _ = telematics.AppendValue(o.json, v) // fails for other values only
}

func (o *object) optionalText(name, v string) {
	if v != "" {
		o.text(name, v)
	}
}

// within adds an object, whose members write adds.
func (o *object) within(name string, write func(*object)) {
	o.member(name)
	o.json = append(o.json, '{')
	write(o)
	o.json = append(o.json, '}')
}

// optionalRaw adds what is JSON already.
func (o *object) optionalRaw(name string, v []byte) {
	if len(v) > 0 {
		o.member(name)
		o.json = append(o.json, v...)
	}
}

func (o *object) optionalTrue(name string, v bool) {
	if v {
		o.member(name)
		o.json = append(o.json, "true"...)
	}
}

// end returns the text of the whole object.
func (o *object) end() []byte { return append(o.json, '}') }
