package load

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/internal/metricstest"
	v1 "motorpool/telematics/v1"
)

// Reports publishes telemetry reports of vehicles in turn, over one connection. Successive reports
// are of vehicles whose data are far from each other. Its result is Published.
//
// Without a rate, as many reports are not handled yet as fit into every queue: that is the fastest
// rate at which none is lost.
type Reports struct {
	Broker   Broker
	Counts   string // URL of the receiver's metrics
	Vehicles int
	From     int           // sequence number before the first one
	For      time.Duration // of the load
	Rate     float64       // reports a second; 0: as many as are handled
}

// Published is the result of Reports.
type Published struct {
	Begin    time.Time `json:"begin"` // of the first report
	End      time.Time `json:"end"`   // of the last one
	Messages int64     `json:"messages"`
	Last     []int     `json:"last"` // sequence number of the last report of each vehicle; 0: none
}

const (
	reportsPerWrite = 100
	// stride is from one vehicle to the next: a prime number, so each has its turn.
	stride      = 61_813
	rateTick    = 5 * time.Millisecond
	windowTick  = 80 * time.Millisecond // each time CPU time of the service is taken
	acksTimeout = 30 * time.Second
	window      = 5000 // reports that are not handled yet; Mosquitto queues 10,000
)

// Do implements Job.
func (r *Reports) Do(ctx context.Context, _ func(string)) (any, error) {
	c, err := r.Broker.dial(ctx, "bench-gateway")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.listen(func(*packets.PublishPacket) {}) }() // ends with the connection
	before, err := Merged(ctx, r.Counts)
	if err != nil {
		return nil, err
	}
	p := Published{Begin: time.Now(), Last: make([]int, r.Vehicles)}
	for time.Since(p.Begin) < r.For && ctx.Err() == nil {
		due, tick := int64(r.Rate*time.Since(p.Begin).Seconds()), rateTick
		if r.Rate == 0 {
			merged, err := Merged(ctx, r.Counts)
			if err != nil {
				return nil, err
			}
			due, tick = merged-before+window, windowTick
		}
		next := time.Now().Add(tick)
		for p.Messages < due && time.Since(p.Begin) < r.For {
			if err := c.send(r.next(&p, min(due-p.Messages, reportsPerWrite))...); err != nil {
				return nil, fmt.Errorf("publish: %w", err)
			}
		}
		time.Sleep(time.Until(next))
	}
	for giveUp := time.Now().Add(acksTimeout); c.acked.Load() < p.Messages; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("connection lost: %w", err)
		default:
		}
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%d of %d reports acknowledged", c.acked.Load(), p.Messages)
		}
	}
	p.End = time.Now()
	return p, nil
}

// next returns the next n reports.
func (r *Reports) next(p *Published, n int64) (all []packets.ControlPacket) {
	now := time.Now().UTC().Format(reportTime)
	for range n {
		vehicle := int(p.Messages) * stride % r.Vehicles
		sequence := r.From + int(p.Messages)/r.Vehicles + 1
		all = append(all, publication(v1.TelemetryChannel.Topic(UnitOf(vehicle+1)), Report(sequence, now)))
		p.Last[vehicle] = sequence
		p.Messages++
	}
	return all
}

// ReportSize is the length of a report.
const ReportSize = 600

const (
	reportTime = "2006-01-02T15:04:05.000Z"
	report     = `{"at":%[2]q,"location":{"latitude":48.1%05[1]d,"longitude":11.5%05[1]d,"heading":%[3]d,"timestamp":%[2]q},` +
		`"telemetry":{"speed_kmh":%[3]d.5,"mileage_km":%.1[4]f,"ignition":"on","gear":"D","parking_brake":"released",` +
		`"fuel_level_percent":61,"onboard_voltage_v":12.6,"is_locked":false,` +
		`"doors":{"front_left":"closed","front_right":"closed","trunk":"closed"},"key_status":"in"},` +
		`"diagnostics":{"dtcs":[],"service_due_in_km":4200,"oil_life_percent":61},` +
		`"connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},"oem_data":{"tcu":"`
	reportEnd    = `"}}`
	firstMileage = 100_000
)

var reportPad = strings.Repeat("x", ReportSize)

// Report is the report of a vehicle with a sequence number. The mileage has the number, position
// and speed change with it.
func Report(sequence int, at string) []byte {
	b := fmt.Appendf(make([]byte, 0, ReportSize), report, sequence*17%100_000, at, 10+sequence%100, firstMileage+float64(sequence)/10)
	b = append(b, reportPad[:max(0, ReportSize-len(reportEnd)-len(b))]...)
	return append(b, reportEnd...)
}

// SequenceOf returns the sequence number of the report with a mileage.
func SequenceOf(mileage float64) int { return int(math.Round((mileage - firstMileage) * 10)) }

// ReportsMerged is the metric of reports that were handled.
const ReportsMerged = "motorpool_reports_merged_total"

// Merged returns how many reports processes have handled, by the metrics at their URLs. That takes
// a millisecond of each process.
func Merged(ctx context.Context, urls ...string) (n int64, err error) {
	for _, address := range urls {
		values, err := metricstest.Read(ctx, http.DefaultClient, address+"?name[]="+ReportsMerged)
		if err != nil {
			return 0, err
		}
		n += int64(values[ReportsMerged])
	}
	return n, nil
}
