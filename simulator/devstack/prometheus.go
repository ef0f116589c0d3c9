package devstack

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// Prometheus is a Prometheus on 127.0.0.1.
type Prometheus struct {
	*child
	port int
}

// StartPrometheus returns when it serves. The file has its configuration, the folder takes its
// data. It needs prometheus to be installed; Available says how.
func StartPrometheus(dir, file string) (*Prometheus, error) {
	c, port, err := startMonitor(PrometheusServer, func(addr string) []string {
		return []string{
			"--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "prometheus"), "--web.listen-address",
			addr, "--log.level", "warn",
		}
	})
	return &Prometheus{c, port}, err
}

// URL is where its HTTP interface is.
func (p *Prometheus) URL() string { return loopbackURL(p.port) }

// Alertmanager is an Alertmanager on 127.0.0.1, without peers.
type Alertmanager struct {
	*child
	port int
}

// StartAlertmanager returns when it serves. The file has its configuration, the folder takes its
// data. It needs prometheus-alertmanager to be installed; Available says how.
func StartAlertmanager(dir, file string) (*Alertmanager, error) {
	c, port, err := startMonitor(AlertmanagerServer, func(addr string) []string {
		return []string{
			"--config.file", file, "--storage.path", filepath.Join(dir, "alertmanager"), "--web.listen-address", addr,
			"--cluster.listen-address", "", "--log.level", "warn",
		}
	})
	return &Alertmanager{c, port}, err
}

// URL is where its HTTP interface is.
func (a *Alertmanager) URL() string { return loopbackURL(a.port) }

// Addr is where Prometheus sends alerts.
func (a *Alertmanager) Addr() string { return fmt.Sprintf("127.0.0.1:%d", a.port) }

func loopbackURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func startMonitor(name string, args func(addr string) []string) (*child, int, error) {
	program, err := findProgram(name)
	if err != nil {
		return nil, 0, err
	}
	var port int
	c, err := onFreePorts(1, func(ports []int) (*child, error) {
		port = ports[0]
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		return startChild(context.Background(), childConfig{
			name: name,
			command: func() (*exec.Cmd, error) {
				cmd := exec.Command(program, args(addr)...)
				cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
				return cmd, nil
			},
			ready: func(ctx context.Context) bool { return isReady(ctx, "http://"+addr+"/-/ready") },
		})
	})
	return c, port, err
}

func isReady(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
