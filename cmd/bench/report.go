package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"motorpool/telematics"
)

// reportSize is how long the payload of a report is.
const reportSize = 600

// blank is a whole report of a vehicle. Where digits of it change from one report to the next they are as many each time, so
// that a report is made by writing over the one before. The pad fills it up to reportSize.
const blank = `{"at":"2026-01-01T00:00:00.000Z",` +
	`"location":{"latitude":48.100000,"longitude":11.500000,"heading":100,"timestamp":"2026-01-01T00:00:00.000Z"},` +
	`"telemetry":{"speed_kmh":10.0,"mileage_km":100000.0,"ignition":"on","gear":"D","parking_brake":"released",` +
	`"fuel_level_percent":61,"onboard_voltage_v":12.6,"is_locked":false,` +
	`"doors":{"front_left":"closed","front_right":"closed","trunk":"closed"},"key_status":"in"},` +
	`"diagnostics":{"dtcs":[],"service_due_in_km":4200,"oil_life_percent":61},` +
	`"connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},"oem_data":{"tcu":"` + pad + `"}}`

const pad = "%"

// report is the present report of one vehicle, within the message that carries it.
type report struct {
	message []byte // whole: header, topic, packet id, payload
	id      int    // where the packet id is

	at, locatedAt, latitude, longitude, heading, speed, mileage int // where each value begins
}

// payloadOf returns a blank report of the right size.
func payloadOf() []byte {
	fill := reportSize - (len(blank) - len(pad))
	return []byte(strings.Replace(blank, pad, strings.Repeat("x", fill), 1))
}

// newReport finds what changes in a message that carries a blank report.
func newReport(message []byte, unit telematics.Unit) *report {
	payload := len(message) - reportSize
	after := func(key string) int {
		return payload + bytes.Index(message[payload:], []byte(key)) + len(key)
	}
	return &report{
		message: message,
		id:      bytes.Index(message, []byte(telematics.TelemetryChannel.Topic(unit))) + len(telematics.TelemetryChannel.Topic(unit)),
		at:      after(`"at":"`), locatedAt: after(`"timestamp":"`),
		latitude: after(`"latitude":48.1`), longitude: after(`"longitude":11.5`), heading: after(`"heading":1`),
		speed: after(`"speed_kmh":`), mileage: after(`"mileage_km":1`),
	}
}

// Sequences of reports are told by the mileage, in tenths of a kilometre beyond this one.
const (
	firstMileage = 100_000
	maxSequence  = 999_999
)

// mileageOf is what a vehicle reports in its n-th report.
func mileageOf(sequence int) float64 { return firstMileage + float64(sequence)/10 }

// sequenceOf is the number of the report with a mileage.
func sequenceOf(mileage float64) int { return int(math.Round((mileage - firstMileage) * 10)) }

// become makes it the vehicle's n-th report, at an instant that was written by instant.
func (r *report) become(sequence int, instant []byte, packet uint16) {
	m := r.message
	m[r.id], m[r.id+1] = byte(packet>>8), byte(packet)
	copy(m[r.at:], instant)
	copy(m[r.locatedAt:], instant)
	digits(m[r.latitude:r.latitude+5], sequence*17)
	digits(m[r.longitude:r.longitude+5], sequence*31)
	digits(m[r.heading:r.heading+2], sequence*7)
	m[r.speed], m[r.speed+1], m[r.speed+3] = byte('1'+sequence%9), byte('0'+sequence/9%10), byte('0'+sequence%10)
	digits(m[r.mileage:r.mileage+5], sequence/10)
	m[r.mileage+6] = byte('0' + sequence%10)
}

// digits writes the last digits of a number.
func digits(into []byte, n int) {
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = byte('0' + n%10)
		n /= 10
	}
}

// instant writes a time as reports have it.
func instant(t time.Time) []byte {
	return t.UTC().AppendFormat(make([]byte, 0, len(timeForm)), timeForm)
}

const timeForm = "2006-01-02T15:04:05.000Z"

// fits reports whether the sequences of a load can be told apart.
func fits(last int) error {
	if last > maxSequence {
		return fmt.Errorf("a vehicle cannot have more than %d reports in one run", maxSequence)
	}
	return nil
}
