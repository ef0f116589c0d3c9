package maintenance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

func (r *round) build(ctx context.Context) error {
	return r.Build(ctx,
		world.Step{What: "authorities", Do: r.makeAuthorities},
		world.Step{What: "mosquitto", Do: r.startMosquitto},
		world.Step{What: "enrolment server", Do: r.startEnrolment},
		world.Step{What: "modules", Do: r.addModules})
}

func (r *round) authority() string { return r.Path("unit-authority") }
func (r *round) crl() string       { return r.Path("units.crl") }

func (r *round) makeAuthorities(ctx context.Context) (err error) {
	if r.servers, err = devstack.NewAuthority(r.Path("servers")); err != nil {
		return err
	}
	_, err = r.tool(ctx, "authority", "--unit-authority", r.authority())
	return err
}

func (r *round) startMosquitto(context.Context) error {
	pair, err := r.servers.Issue("mqtt")
	if err != nil {
		return err
	}
	if r.Mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: r.Path("mosquitto"), ServicePassword: r.ServicePassword, CertFile: pair.CertFile, KeyFile: pair.KeyFile,
		UnitsCA: filepath.Join(r.authority(), "ca.crt"), UnitsCRL: r.crl(), Logger: r.LogFile("mosquitto"),
	}); err != nil {
		return err
	}
	r.OnClose(r.Mosquitto.Close)
	return nil
}

func (r *round) startEnrolment(ctx context.Context) error {
	pair, err := r.servers.Issue("enrolment")
	if err != nil {
		return err
	}
	port, err := devstack.FreePort()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server := r.command(context.WithoutCancel(ctx), "enrol", "--unit-authority", r.authority(), "--listen", address, "--certificate", pair.CertFile, "--certificate-key", pair.KeyFile)
	if err := server.Start(); err != nil {
		return err
	}
	r.OnClose(func() error { return errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()) })
	r.enrolment = "https://" + address
	return world.Eventually(ctx, time.Minute, "the enrolment server listens", func(context.Context) bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// addModules lets the first modules in; every third one with a certificate.
func (r *round) addModules(ctx context.Context) error {
	for n := range r.Modules {
		add := addByPassword
		if n%3 == 2 {
			add = addByCertificate
		}
		if err := add(r, ctx); err != nil {
			return err
		}
	}
	r.check(ctx, "the beginning")
	return nil
}

// command is a run of "motorpool unit", with the settings of an operator at Mosquitto's machine.
func (r *round) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Binary, append([]string{"unit"}, args...)...)
	cmd.Env = append(os.Environ(), "MOTORPOOL_UNITS_CRL="+r.crl())
	if r.Mosquitto != nil {
		cmd.Env = append(cmd.Env, "MOTORPOOL_UNITS_PASSWD="+r.Mosquitto.UnitsPasswords(), "MOTORPOOL_MOSQUITTO_PID_FILE="+r.Mosquitto.PIDFile())
	}
	return cmd
}

// service are the settings by which the tool recognises modules, and ends their connections.
func (r *round) service(args ...string) []string {
	return append(args, "--mqtt-url", r.Mosquitto.ServiceURL(), "--mqtt-password", r.ServicePassword)
}

func (r *round) tool(ctx context.Context, args ...string) (printed string, err error) {
	out, err := r.command(ctx, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("motorpool unit %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// match returns the part of what was printed that a pattern's group matches, a secret.
func (r *round) match(printed, pattern string) (string, error) {
	found := regexp.MustCompile(pattern).FindStringSubmatch(printed)
	if found == nil {
		return "", fmt.Errorf("nothing like %q in what the tool has printed", pattern)
	}
	r.InUse.Add("credential of a module", found[1])
	return found[1], nil
}

func (r *round) password(printed string, unit telematics.Unit) (string, error) {
	return r.match(printed, `(?m)^`+string(unit)+` (\S{32})$`)
}

// enrol gets a module a certificate for the code that the tool has printed.
func (r *round) enrol(ctx context.Context, unit telematics.Unit, printed string) (*tls.Certificate, error) {
	code, err := r.match(printed, `Bearer ([A-Z2-7]{26})"`)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(unit)}}, key)
	if err != nil {
		return nil, err
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.enrolment+"/v1/enrol", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Authorization", "Bearer "+code)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.servers.Trusted(), DisableKeepAlives: true}}
	response, err := client.Do(post)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("enrol: %s: %s, %w", response.Status, answer, err)
	}
	certificate := &tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode(answer); block != nil; block, rest = pem.Decode(rest) {
		certificate.Certificate = append(certificate.Certificate, block.Bytes)
	}
	return certificate, nil
}
