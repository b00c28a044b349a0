"""What .ci/trials is made of, tried with a made-up docker: the trials themselves need an engine."""

import os
import re
import subprocess

from harness.settings import ROOT

TRIALS = (ROOT / ".ci/trials").read_text(encoding="utf-8")


def trials(tmp_path, text):
    (tmp_path / "docker").write_text('#!/usr/bin/env bash\necho "really $*"\n')
    (tmp_path / "docker").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ("bash", "-euc", f". {ROOT}/.ci/trials\nwork={tmp_path}\n{text}")
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_one_question_to_docker_has_another_answer_and_all_others_the_real_one(tmp_path):
    asked = "with_answer 'info --format {{.DockerRootDir}}' /var/snap/docker bash -c"
    done = trials(tmp_path, f"{asked} 'docker info --format \"{{{{.DockerRootDir}}}}\"; docker info; docker ps'")
    assert done.stdout.splitlines() == ["/var/snap/docker", "really info", "really ps"]


def test_every_trial_is_a_step():
    defined = set(re.findall(r"^(trial_\w+)\(\)", TRIALS, re.MULTILINE))
    assert len(defined) > 12
    assert defined == set(re.findall(r'^ +step ".*" (trial_\w+)$', TRIALS, re.MULTILINE))
