"""What the demo found out: the reports of its jobs, and the figures that follow from them."""

from dataclasses import asdict, dataclass

from gristmill.report import JobReport

__all__ = ["Figures", "Floor"]


@dataclass(frozen=True, slots=True)
class Floor:
    """What the device took for plain transfers of the same bytes."""

    cached_read_s: float
    """Seconds to read them from the page cache, once."""
    direct_write_s: float
    """Seconds to write them past the cache, durable."""

    @property
    def wall_s(self) -> float:
        """The time that a program needs which reads and writes the bytes and does nothing else."""
        return self.cached_read_s + self.direct_write_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the demo found out."""

    made: JobReport
    sorted: JobReport
    validated: JobReport
    sorted_alone: JobReport
    """With one worker: the same files, byte for byte."""
    floor: Floor

    @property
    def gb(self) -> float:
        """Gigabytes sorted."""
        return self.sorted.output_bytes / 1e9

    @property
    def gb_per_s(self) -> float:
        """Gigabytes sorted per second."""
        return self.gb / self.sorted.wall_s

    @property
    def share_of_floor(self) -> float:
        """The floor's time over the sort's: 1 for a sort that costs nothing beyond moving bytes."""
        return self.floor.wall_s / self.sorted.wall_s

    @property
    def cpu_s_per_gb(self) -> float:
        """CPU seconds of the sort, user and system, for each gigabyte."""
        return (self.sorted.user_s + self.sorted.sys_s) / self.gb

    def to_json(self) -> dict[str, object]:
        """Return the report of the first sort, and under `demo` what surrounds it."""
        return {
            **asdict(self.sorted),
            "command": "demo",
            "demo": {
                "gb_per_s": self.gb_per_s,
                "share_of_floor": self.share_of_floor,
                "cpu_s_per_gb": self.cpu_s_per_gb,
                "floor": asdict(self.floor),
                "same_bytes_with_one_worker": True,  # there are no figures where it does not hold
                "steps": {
                    "teragen": asdict(self.made),
                    "teravalidate": asdict(self.validated),
                    "terasort_with_one_worker": asdict(self.sorted_alone),
                },
            },
        }
