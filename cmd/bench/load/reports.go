package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Reports publishes telemetry reports of vehicles in turn, over one connection. Its result is
// Published.
//
// Without a rate, at most Window reports are between the publisher and their end: the fastest rate
// at which no queue overflows.
type Reports struct {
	Broker   Broker
	Counts   string // URL at which the receiver counts reports
	Vehicles int
	Stride   int           // from one vehicle to the next, coprime with Vehicles; 0: 1
	From     int           // sequence number before the first one
	For      time.Duration // of the load
	Rate     float64       // reports a second; 0: as many as come to an end
	Window   int64
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
	// rateTick is between two calculations of how many reports are due at a rate. Within a window
	// the counts are read when about half of it is used up, but not more often and not less often
	// than these, since each reading takes CPU time of the service.
	rateTick    = 5 * time.Millisecond
	leastTick   = 50 * time.Millisecond
	mostTick    = 500 * time.Millisecond
	acksTimeout = 30 * time.Second
)

// Do implements Job.
func (r *Reports) Do(ctx context.Context, _ func(string)) (any, error) {
	g, err := r.Broker.dialGateway()
	if err != nil {
		return nil, err
	}
	defer g.conn.Close()
	counting := make(chan error, 1)
	go func() { counting <- g.countAcks() }() // ends with the connection
	before, err := ReadCounts(ctx, r.Counts)
	if err != nil {
		return nil, err
	}
	p := Published{Begin: time.Now(), Last: make([]int, r.Vehicles)}
	for time.Since(p.Begin) < r.For && ctx.Err() == nil {
		due, tick := int64(r.Rate*time.Since(p.Begin).Seconds()), rateTick
		if r.Rate == 0 {
			counts, err := ReadCounts(ctx, r.Counts)
			if err != nil {
				return nil, err
			}
			ended := counts.Since(before).Ended()
			due, tick = ended+r.Window, leastTick
			if ended > 0 {
				tick = min(max(time.Since(p.Begin)*time.Duration(r.Window)/time.Duration(2*ended), leastTick), mostTick)
			}
		}
		next := time.Now().Add(tick)
		for p.Messages < due && time.Since(p.Begin) < r.For {
			if err := r.write(g, &p, min(due-p.Messages, reportsPerWrite)); err != nil {
				return nil, fmt.Errorf("publish: %w", err)
			}
		}
		time.Sleep(time.Until(next))
	}
	for giveUp := time.Now().Add(acksTimeout); g.acked.Load() < p.Messages; time.Sleep(time.Millisecond) {
		select {
		case err := <-counting:
			return nil, fmt.Errorf("connection lost: %w", err)
		default:
		}
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%d of %d reports acknowledged", g.acked.Load(), p.Messages)
		}
	}
	p.End = time.Now()
	return p, nil
}

// write publishes the next reports.
func (r *Reports) write(g *gateway, p *Published, n int64) error {
	now := time.Now().UTC().Format(reportTime)
	for range n {
		vehicle := int(p.Messages) % r.Vehicles * max(r.Stride, 1) % r.Vehicles
		sequence := r.From + int(p.Messages)/r.Vehicles + 1
		if err := g.add(UnitOf(vehicle+1), Report(sequence, now)); err != nil {
			return err
		}
		p.Last[vehicle] = sequence
		p.Messages++
	}
	_, err := g.batch.WriteTo(g.conn)
	return err
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

// gateway is one MQTT connection that carries the reports of all vehicles. A client library would
// take more CPU time than what is measured: here an acknowledgement is counted by its four bytes.
type gateway struct {
	conn   net.Conn
	from   *bufio.Reader
	acked  atomic.Int64
	packet *packets.PublishPacket
	batch  bytes.Buffer
}

func (b Broker) dialGateway() (*gateway, error) {
	u, err := url.Parse(b.URL)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, dialTimeout)
	if err != nil {
		return nil, err
	}
	g := &gateway{conn: conn, from: bufio.NewReader(conn), packet: packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession = "MQTT", 4, true
	connect.ClientIdentifier, connect.Keepalive = "bench-gateway", 0
	connect.UsernameFlag, connect.Username, connect.PasswordFlag, connect.Password = true, b.User, true, []byte(b.Password)
	if err := connect.Write(conn); err != nil {
		return nil, fmt.Errorf("connect to the MQTT broker: %w", err)
	}
	answer, err := packets.ReadPacket(g.from)
	if granted, ok := answer.(*packets.ConnackPacket); err != nil || !ok || granted.ReturnCode != packets.Accepted {
		return nil, fmt.Errorf("connect to the MQTT broker: %v, %w", answer, err)
	}
	return g, nil
}

// countAcks reads acknowledgements until the connection ends.
func (g *gateway) countAcks() error {
	var answer [4]byte
	for {
		if _, err := io.ReadFull(g.from, answer[:]); err != nil {
			return err
		}
		if answer[0] != packets.Puback<<4 || answer[1] != 2 {
			return fmt.Errorf("%x is no acknowledgement", answer)
		}
		g.acked.Add(1)
	}
}

// add adds a report to the batch.
func (g *gateway) add(unit telematics.Unit, payload []byte) error {
	if g.packet.MessageID++; g.packet.MessageID == 0 {
		g.packet.MessageID = 1
	}
	g.packet.Qos, g.packet.TopicName, g.packet.Payload = 1, v1.TelemetryChannel.Topic(unit), payload
	return g.packet.Write(&g.batch)
}
