package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

const (
	// policyFile is asked by Debian's packages before they start a service; 101 means no.
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\nexit 101\n"

	// clusterConf tells postgresql-common whether to make a separate cluster.
	clusterConf = "/etc/postgresql-common/createcluster.conf"
	noCluster   = "create_main_cluster = false\n"
)

func isDebian() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && exists("/etc/debian_version")
}

// installDebianPackage installs PostgreSQL without leaving a running service or a cluster behind.
// It needs root.
func installDebianPackage(ctx context.Context) (err error) {
	if !exists(policyFile) { // an existing policy is the administrator's
		if err := os.WriteFile(policyFile, []byte(policy), 0o755); err != nil {
			return fmt.Errorf("forbid services to start: %w", err)
		}
		defer func() { err = errors.Join(err, os.Remove(policyFile)) }()
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	// In two steps: the first brings the file that keeps the second from making a cluster.
	if err := aptGet(ctx, "install", "postgresql-common"); err != nil {
		return err
	}
	conf, err := os.ReadFile(clusterConf)
	if err != nil {
		return fmt.Errorf("forbid a default cluster: %w", err)
	}
	if !bytes.Contains(conf, []byte("\n"+noCluster)) {
		if err := os.WriteFile(clusterConf, append(conf, "\n"+noCluster...), 0o644); err != nil {
			return fmt.Errorf("forbid a default cluster: %w", err)
		}
	}
	return aptGet(ctx, "install", "postgresql")
}

func aptGet(ctx context.Context, command string, packages ...string) error {
	args := slices.Concat([]string{"-q", "-y", "--no-install-recommends", command}, packages)
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if said, err := runWith(ctx, cmd); err != nil {
		return fmt.Errorf("apt-get %s: %w; it said:\n%s", command, err, said)
	}
	return nil
}
