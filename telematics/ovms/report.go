package ovms

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// Texts of a boolean metric (ovms_metrics.cpp: OvmsMetricBool::AsString).
const (
	yes = "yes"
	no  = "no"
)

// DecodeReport implements telematics.Dialect. A metric is one value without a time, so an equal one
// may be a repetition: the module sends all metrics every 20 minutes and at each connection,
// however old they are.
func (Dialect) DecodeReport(m telematics.Message, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return telematics.Report{}, nil, errTooLarge
	}
	r := telematics.Report{At: received, Undated: true}
	name, isMetric := strings.CutPrefix(m.Subject, metrics)
	// Empty: what was retained is cleared.
	if m.Subject == connected || isMetric && len(m.Payload) == 0 && !textual[name] {
		return telematics.Report{}, nil, telematics.ErrOtherKind
	}
	if isMetric {
		dropped := readMetric(&r, name, string(m.Payload))
		return r, dropped, nil
	}
	if name, ok := strings.CutPrefix(m.Subject, alerts); ok {
		r.Alarms = []telematics.Alarm{{Kind: kind(name), Text: clean(strings.TrimSpace(string(m.Payload)), telematics.MaxText)}}
		return r, nil, nil
	}
	if name, ok := strings.CutPrefix(m.Subject, vehicleAlerts); ok {
		if !alsoNotified[name] {
			r.Alarms = []telematics.Alarm{{Kind: kind("vehicle/alert/" + name)}}
		}
		return r, nil, nil
	}
	return telematics.Report{}, nil, fmt.Errorf("decode report: topic part %.64q is neither a metric nor an alert", m.Subject)
}

// alsoNotified are events that the module sends in addition to an alert with a text (vehicle.cpp:
// MetricModified, Notify12vCritical, Notify12vRecovered, Notify12vShutdown).
var alsoNotified = map[string]bool{"12v/on": true, "12v/off": true, "12v/shutdown": true}

// kind returns the module's name of an alert, such as flatbed.moved.
func kind(name string) string { return clean(strings.ReplaceAll(name, "/", "."), maxDetail) }

// reader sets values of a report from a metric's text, or returns what is wrong with the text.
type reader func(r *telematics.Report, text string) error

// table holds the metrics that have a field. All others only count as contact.
var table = map[string]reader{
	"v/p/latitude":    coordinate(telematics.Latitude),
	"v/p/longitude":   coordinate(telematics.Longitude),
	"v/p/direction":   number(telematics.Heading),
	"v/p/gpstime":     positionTime,
	"v/p/speed":       number(telematics.SpeedKmh),
	"v/p/odometer":    number(telematics.MileageKm),
	"v/e/on":          yesOrNo(telematics.Ignition, "on", "off"),
	"v/e/gear":        gear,
	"v/e/handbrake":   yesOrNo(telematics.ParkBrake, "engaged", "released"),
	"v/e/locked":      yesOrNo(telematics.IsLocked, true, false),
	"v/e/serv/range":  number(telematics.ServiceDueKm),
	"v/b/soc":         number(telematics.Battery),
	"v/b/range/est":   number(telematics.RangeKm),
	"v/b/12v/voltage": number(telematics.OnboardV),
	"v/c/state":       charging,
	"v/d/fl":          yesOrNo(telematics.DoorFrontLeft, "open", "closed"),
	"v/d/fr":          yesOrNo(telematics.DoorFrontRight, "open", "closed"),
	"v/d/rl":          yesOrNo(telematics.DoorRearLeft, "open", "closed"),
	"v/d/rr":          yesOrNo(telematics.DoorRearRight, "open", "closed"),
	"v/d/trunk":       yesOrNo(telematics.DoorTrunk, "open", "closed"),
	"v/type":          vehicleType,
	"m/version":       firmware,
}

// textual are the metrics that the firmware itself sets to an empty text: when a charge has ended,
// and when no vehicle type is loaded. All others it sends only with a value.
var textual = map[string]bool{"v/c/state": true, "v/type": true}

// notANumber are the texts of a measurement without a value (ovms_metrics.cpp:
// OvmsMetricFloat::AsString, by a C++ stream).
var notANumber = regexp.MustCompile(`^[+-]?(nan|inf)$`)

// Metrics returns the names of the metrics that the codec reads, for the setting metrics.include of
// a module. A module that does not send s.v3.connected counts as offline.
func Metrics() []string {
	names := []string{"s.v3.connected"}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		names = append(names, kind(name))
	}
	return names
}

func readMetric(r *telematics.Report, name, text string) []telematics.Dropped {
	read, ok := table[name]
	if !ok {
		return nil
	}
	r.Values = make(map[telematics.Field]any, 2)
	if err := read(r, text); err != nil {
		r.Values = nil
		return []telematics.Dropped{{Field: kind(name), Fault: telematics.FaultOf(err), Reason: err.Error()}}
	}
	return nil
}

func number(f telematics.Field) reader {
	return func(r *telematics.Report, text string) error {
		if notANumber.MatchString(text) {
			r.Values[f] = nil
			return nil
		}
		return set(r, f, text)
	}
}

// set sets a field from a text that is a JSON value.
func set(r *telematics.Report, f telematics.Field, raw string) error {
	value, err := telematics.ParseValue(f, json.RawMessage(raw))
	if err == nil && value == nil {
		err = errors.New("null is no value of a metric")
	}
	if err != nil {
		return err
	}
	r.Values[f] = value
	return nil
}

// noPosition is the text of both coordinates until the module has its first fix.
const noPosition = "0.000000"

func coordinate(f telematics.Field) reader {
	return func(r *telematics.Report, text string) error {
		if text == noPosition || text == "0" {
			return errors.New("no position yet")
		}
		return set(r, f, text)
	}
}

// gpsTime is the text of v.p.gpstime (ovms_metrics.cpp: OvmsMetricInt64::AsString, DateLocal).
const gpsTime = "2006-01-02 15:04:05"

// positionTime reads the time of the position. It must be in UTC: the abbreviations of other time
// zones are ambiguous.
func positionTime(r *telematics.Report, text string) error {
	clock, ok := strings.CutSuffix(text, " UTC")
	if !ok {
		if clock, ok = strings.CutSuffix(text, " GMT"); !ok {
			return fmt.Errorf("%.40q is not in UTC: set the module's time zone, config set vehicle timezone UTC0", text)
		}
	}
	at, err := time.Parse(gpsTime, clock)
	if err != nil {
		return errors.New("not a date and a time")
	}
	if !telematics.IsPlausible(at, r.At) {
		return fmt.Errorf("%s is more than 5 minutes ahead, or before 2020", text)
	}
	r.Values[telematics.LocatedAt] = at
	return nil
}

func yesOrNo(f telematics.Field, ifYes, ifNo any) reader {
	return func(r *telematics.Report, text string) error {
		switch text {
		case yes:
			r.Values[f] = ifYes
		case no:
			r.Values[f] = ifNo
		default:
			return fmt.Errorf("%.32q is not yes or no", text)
		}
		return nil
	}
}

// gear reads the direction: negative is reverse, 0 neutral. A module does not distinguish P from N.
func gear(r *telematics.Report, text string) error {
	var n int
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return errors.New("not a whole number")
	}
	switch {
	case n < 0:
		r.Values[telematics.Gear] = "R"
	case n == 0:
		r.Values[telematics.Gear] = "N"
	default:
		r.Values[telematics.Gear] = "D"
	}
	return nil
}

// charging reads the state of charging. A state for which the interface has no word is kept
// unchanged: "done" or "stopped" does not mean that the plug was pulled. Empty: a charge has ended.
func charging(r *telematics.Report, text string) error {
	switch text {
	case "charging", "topoff":
		r.Values[telematics.Charging], r.Values[telematics.RawCharging] = "charging", nil
	case "":
		r.Values[telematics.Charging], r.Values[telematics.RawCharging] = nil, nil
	default:
		if len(text) > maxDetail {
			return errors.New("not a state of charging")
		}
		r.Values[telematics.Charging], r.Values[telematics.RawCharging] = nil, clean(text, maxDetail)
	}
	return nil
}

// vehicleType shows the vehicle type set in the module, which must equal that of the installation.
// Empty: none is set.
func vehicleType(r *telematics.Report, text string) error {
	if text == "" {
		r.Values[telematics.OEMData] = nil
		return nil
	}
	if len(text) > maxDetail {
		return errors.New("not a vehicle type")
	}
	r.Values[telematics.OEMData] = map[string]any{"ovms_vehicle_type": clean(text, maxDetail)}
	return nil
}

func firmware(r *telematics.Report, text string) error {
	if text == "" {
		return errors.New("no version")
	}
	r.Values[telematics.Firmware] = clean(text, telematics.MaxText)
	return nil
}
