package devstack

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// Monitor is a Prometheus, or an Alertmanager without peers, on 127.0.0.1.
type Monitor struct {
	*child
	Addr string
}

// URL is where its HTTP interface is.
func (m *Monitor) URL() string { return "http://" + m.Addr }

// StartPrometheus returns when it serves. The file has its configuration, the folder takes its
// data. It needs prometheus to be installed; Available says how.
func StartPrometheus(dir, file string) (*Monitor, error) {
	return startMonitor(PrometheusServer, func(addr string) []string {
		return []string{
			"--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "prometheus"), "--web.listen-address",
			addr, "--log.level", "warn",
		}
	})
}

// StartAlertmanager returns when it serves. The file has its configuration, the folder takes its
// data. It needs prometheus-alertmanager to be installed; Available says how.
func StartAlertmanager(dir, file string) (*Monitor, error) {
	return startMonitor(AlertmanagerServer, func(addr string) []string {
		return []string{
			"--config.file", file, "--storage.path", filepath.Join(dir, "alertmanager"), "--web.listen-address", addr,
			"--cluster.listen-address", "", "--log.level", "warn",
		}
	})
}

// probe uses no connection twice.
var probe = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func startMonitor(name string, args func(addr string) []string) (*Monitor, error) {
	program, err := findProgram(name)
	if err != nil {
		return nil, err
	}
	return onFreePorts(1, func(ports []int) (*Monitor, error) {
		addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
		c, err := startChild(context.Background(), childConfig{
			name: name,
			command: func() (*exec.Cmd, error) {
				cmd := exec.Command(program, args(addr)...)
				cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
				return cmd, nil
			},
			ready: func(ctx context.Context) bool { return IsReady(ctx, probe, "http://"+addr+"/-/ready") },
		})
		return &Monitor{c, addr}, err
	})
}

// IsReady reports whether the answer at a URL is 200.
func IsReady(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
