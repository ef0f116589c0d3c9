package firmware

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is how a metric's value is written on the wire.
type Kind int

const (
	Text   Kind = iota
	YesNo       // main/ovms_metrics.cpp:2068
	Whole       // main/ovms_metrics.cpp:1771
	Number      // six significant digits, an exponent from 1e+06 on: main/ovms_metrics.cpp:2229
	Fixed6      // six decimals: main/metrics_standard.cpp, SetFormat of the positions
	UTC         // date and time with the word UTC: main/ovms_metrics.cpp:2491
	Local       // likewise with the abbreviation of the module's time zone
)

// Kinds are the standard metrics that matter here: main/metrics_standard.cpp. Each is sent in the
// unit that it is kept in: kilometres, km/h, kW, volts, percent, degrees.
var Kinds = map[string]Kind{
	"m.version": Text, "m.time.utc": UTC, "m.monotonic": Whole,
	"m.net.sq": Whole, "s.v3.connected": YesNo, "s.v3.peers": Whole,
	"v.type": Text, "v.vin": Text, "v.b.soc": Number,
	"v.b.range.est": Number, "v.b.12v.voltage": Number, "v.b.12v.voltage.alert": YesNo,
	"v.c.state": Text, "v.c.charging": YesNo, "v.c.power": Number,
	"v.c.pilot": YesNo, "v.d.fl": YesNo, "v.d.fr": YesNo,
	"v.d.rl": YesNo, "v.d.rr": YesNo, "v.d.trunk": YesNo,
	"v.d.hood": YesNo, "v.d.cp": YesNo, "v.e.on": YesNo,
	"v.e.awake": YesNo, "v.e.locked": YesNo, "v.e.alarm": YesNo,
	"v.e.valet": YesNo, "v.e.handbrake": YesNo, "v.e.gear": Whole,
	"v.e.serv.range": Whole, "v.e.parktime": Whole, "v.e.drivetime": Whole,
	"v.e.temp": Number, "v.e.cabintemp": Number, "v.p.latitude": Fixed6,
	"v.p.longitude": Fixed6, "v.p.altitude": Number, "v.p.direction": Number,
	"v.p.speed": Number, "v.p.gpsspeed": Number, "v.p.odometer": Number,
	"v.p.gpslock": YesNo, "v.p.gpstime": Local, "v.p.satcount": Whole,
}

// Reads reports whether a payload has the form of a kind.
func (k Kind) Reads(payload string) bool {
	switch k {
	case YesNo:
		return payload == "yes" || payload == "no"
	case Whole:
		n, err := strconv.ParseInt(payload, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == payload
	case Number:
		f, err := strconv.ParseFloat(payload, 32)
		return err == nil && number(f) == payload
	case Fixed6:
		f, err := strconv.ParseFloat(payload, 64)
		return err == nil && strconv.FormatFloat(f, 'f', 6, 64) == payload
	case UTC, Local:
		_, err := time.Parse("2006-01-02 15:04:05 MST", payload)
		return err == nil && (k == Local || strings.HasSuffix(payload, " UTC"))
	default:
		return true
	}
}

func number(f float64) string { return strconv.FormatFloat(float64(float32(f)), 'g', 6, 32) }

// write returns a value as it is sent: bool, int, float64, string or time.Time.
func (k Kind) write(value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case int:
		return strconv.Itoa(v)
	case float64:
		if k == Fixed6 {
			return strconv.FormatFloat(float64(float32(v)), 'f', 6, 64)
		}
		return number(v)
	case time.Time:
		if k == UTC {
			v = v.UTC()
		}
		return v.Format("2006-01-02 15:04:05 MST")
	default:
		return value.(string)
	}
}

// metric is one value of the module. A metric that was never set is not sent; one whose first value
// is its zero is not modified by it, and waits for a transmission of all: main/ovms_metrics.cpp,
// SetValue and SetModified.
type metric struct {
	name     string
	kind     Kind
	value    string
	modified bool
	at       time.Time // of the latest value
}

// metrics are sorted by name: main/ovms_metrics.cpp:1157.
type metrics []*metric

func (ms metrics) find(name string) (int, bool) {
	return slices.BinarySearchFunc(ms, name, func(m *metric, name string) int { return strings.Compare(m.name, name) })
}

// set reports whether the value is another one.
func (ms *metrics) set(name string, value any) bool {
	at, ok := ms.find(name)
	if !ok {
		*ms = slices.Insert(*ms, at, &metric{name: name, kind: Kinds[name], value: Kinds[name].zero()})
	}
	m := (*ms)[at]
	written := m.kind.write(value)
	changed := written != m.value
	m.value, m.modified, m.at = written, m.modified || changed, time.Now()
	return changed
}

func (k Kind) zero() string {
	switch k {
	case YesNo:
		return "no"
	case Whole, Number:
		return "0"
	case Fixed6:
		return "0.000000"
	default:
		return ""
	}
}

// passes reads names with a * in front or at the end: components/id_filter/src/id_filter.cpp.
func passes(list []string, name string) bool {
	return slices.ContainsFunc(list, func(item string) bool {
		item = strings.TrimSpace(item)
		if end, ok := strings.CutPrefix(item, "*"); ok {
			return strings.HasSuffix(name, end)
		}
		if start, ok := strings.CutSuffix(item, "*"); ok {
			return strings.HasPrefix(name, start)
		}
		return item != "" && item == name
	})
}

// topicOf writes a dotted name as a topic: main/ovms_utils.cpp:627.
func topicOf(name string) string { return strings.ReplaceAll(name, ".", "/") }
