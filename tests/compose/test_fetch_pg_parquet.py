"""images/postgres/fetch-pg-parquet against a signed archive with the layout of the real one."""

import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import archive
import pytest

from harness.settings import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, ("apt-get", "curl", "dpkg-deb", "gpg"))),
        reason="needs Debian's apt-get, curl and gpg",
    ),
]
# Upstream's own suffixes; ~trixie in a real one.
FIRST, AGAIN, RENAMED = ("0.5.1-1PIGSTY~test", "0.5.1-2PIGSTY~test", "0.5.1-1PGSTY~test")


@dataclass
class Repository:
    """What the script is told, and the folder it fills."""

    url: str
    folder: Path
    packages: Path
    key: archive.Key

    @property
    def codename(self):
        return archive.of_this_machine("VERSION_CODENAME")

    @property
    def root(self):
        return self.folder / "apt/pgsql" / self.codename

    def publish(self, *versions):
        archive.archive(self.root, self.codename, list(versions), self.key)

    def fetch(self, **changed):
        told = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PACKAGES": str(self.packages),
            "PG_MAJOR": "18",
            "PG_PARQUET_REPOSITORY": f"{self.url}/apt/pgsql",
            "PG_PARQUET_KEY": f"{self.url}/key",
            "PG_PARQUET_FINGERPRINT": self.key.fingerprint,
            "PG_PARQUET_VERSION": "0.5.1",
        }
        script = ROOT / "images/postgres/fetch-pg-parquet"
        return subprocess.run(("bash", script), env=told | changed, capture_output=True, text=True)

    def found(self):
        return sorted(path.name for path in self.packages.iterdir())


@pytest.fixture
def repository(tmp_path):
    key = archive.new_key(tmp_path / "gnupg")
    served, packages = tmp_path / "served", tmp_path / "packages"
    served.mkdir()
    packages.mkdir()
    (served / "key").write_text(key.gpg("--armor", "--export"))
    with archive.served(served) as url:
        yield Repository(url, served, packages, key)


def goes_without(done, repository, why):
    """One line that says why, a build that goes on, and no package."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pg_parquet: not in this image: ")
    assert len(done.stdout.splitlines()) == 1
    assert why in done.stdout
    assert repository.found() == []


def ends_the_build(done, repository):
    assert done.returncode == 1
    assert "do not trust" in done.stderr
    assert repository.found() == []


@pytest.mark.parametrize("version", [FIRST, AGAIN, RENAMED])
def test_the_package_comes_from_the_archive_of_the_release(repository, version):
    repository.publish(version)
    done = repository.fetch()
    assert done.returncode == 0, done.stderr
    assert repository.found() == [f"postgresql-18-pg-parquet_{version}_{archive.architecture()}.deb"]


def test_of_two_builds_of_the_version_the_later_is_taken_and_a_newer_version_is_not(repository):
    repository.publish(FIRST, AGAIN, "0.5.10-1PIGSTY~test", "0.6.0-1PIGSTY~test")
    assert repository.fetch().returncode == 0
    assert repository.found() == [f"postgresql-18-pg-parquet_{AGAIN}_{archive.architecture()}.deb"]


def test_the_short_form_of_the_address_finds_no_release_file(repository, tmp_path):
    """What the lab once asked for: the root without the codename. Apt itself says that there is nothing."""
    repository.publish(FIRST)
    keyring, lists = tmp_path / "key.gpg", tmp_path / "lists/partial"
    keyring.write_bytes(subprocess.run(("gpg", "--dearmor"), input=(repository.folder / "key").read_bytes(),
                                       capture_output=True, check=True).stdout)  # fmt: skip
    lists.mkdir(parents=True)
    sources = tmp_path / "short.list"
    sources.write_text(f"deb [signed-by={keyring}] {repository.url}/apt/pgsql {repository.codename} main\n")
    options = (f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-", f"Dir::State::lists={lists.parent}",
               f"Dir::Cache={tmp_path}", "APT::Sandbox::User=root")  # fmt: skip
    command = ["apt-get", "update", *(word for option in options for word in ("-o", option))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "does not have a Release file" in done.stderr


def test_an_archive_that_has_moved_leaves_an_image_without(repository):
    repository.publish(FIRST)
    repository.root.rename(repository.folder / "elsewhere")
    goes_without(repository.fetch(), repository, "does not have a Release file")


def test_a_repository_that_is_not_reached_leaves_an_image_without(repository):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    goes_without(repository.fetch(PG_PARQUET_KEY=f"{url}/key"), repository, "curl: (7)")
    goes_without(repository.fetch(PG_PARQUET_REPOSITORY=url), repository, "no archive at")


def test_an_archive_without_the_version_leaves_an_image_without(repository):
    repository.publish("0.6.0-1PIGSTY~test")
    goes_without(repository.fetch(), repository, "no version 0.5.1 for Postgres 18")


def test_a_page_where_the_key_was_leaves_an_image_without(repository):
    (repository.folder / "key").write_text("<html>This site has moved</html>")
    goes_without(repository.fetch(), repository, "is no key")


def test_a_page_where_the_archive_was_leaves_an_image_without(repository):
    repository.publish(FIRST)
    (repository.root / f"dists/{repository.codename}/InRelease").write_text("<html>This site has moved</html>")
    goes_without(repository.fetch(), repository, "is no archive")


def test_another_key_than_the_known_one_ends_the_build(repository, tmp_path):
    repository.publish(FIRST)
    other = archive.new_key(tmp_path / "other")
    (repository.folder / "key").write_text(other.gpg("--armor", "--export"))
    ends_the_build(repository.fetch(), repository)


def test_an_archive_signed_with_another_key_ends_the_build(repository, tmp_path):
    known, repository.key = repository.key, archive.new_key(tmp_path / "other")
    repository.publish(FIRST)
    repository.key = known
    ends_the_build(repository.fetch(), repository)


def test_an_archive_whose_signature_was_taken_off_ends_the_build(repository):
    repository.publish(FIRST)
    signed = repository.root / f"dists/{repository.codename}/InRelease"
    text = signed.read_text()
    body = text.split("\n\n", 1)[1].split("-----BEGIN PGP SIGNATURE")[0]
    signed.with_name("Release").write_text(body)
    signed.unlink()
    ends_the_build(repository.fetch(), repository)


def test_a_package_that_is_not_what_was_signed_ends_the_build(repository):
    repository.publish(FIRST)
    file = next((repository.root / "pool").rglob("*.deb"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    ends_the_build(repository.fetch(), repository)


def test_a_package_at_hand_needs_no_repository(repository):
    (repository.packages / "postgresql-18-pg-parquet_0.5.1_all.deb").touch()
    done = repository.fetch(PG_PARQUET_REPOSITORY="http://127.0.0.1:1")
    assert done.returncode == 0
    assert "using the packages" in done.stdout


def test_a_ca_bundle_is_trusted_next_to_whom_the_system_trusts(repository, tmp_path):
    """What curl is given is seen by one that stands in for it; the archive itself comes over plain HTTP."""
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin/curl"
    curl.write_text(
        "#!/usr/bin/env bash\n"
        f'while [ $# -gt 0 ]; do if [ "$1" = --cacert ]; then cat "$2" >{tmp_path}/trusted; fi; shift; done; exit 7\n'
    )
    curl.chmod(0o755)
    (tmp_path / "bundle").write_text("the proxy's")
    path = f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    goes_without(repository.fetch(PATH=path, CA_BUNDLE=f"{tmp_path}/bundle"), repository, "no key at")
    system = Path("/etc/ssl/certs/ca-certificates.crt").read_text()
    assert (tmp_path / "trusted").read_text() == f"the proxy's\n{system}"


def test_one_command_tries_again_in_every_flavour(repository):
    for done in (repository.fetch(), repository.fetch(PG_PARQUET_REPOSITORY="")):
        assert "make up" in done.stdout
        assert "docker" not in done.stdout
