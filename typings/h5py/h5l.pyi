TYPE_HARD: int
TYPE_SOFT: int

class LinkInfo:
    @property
    def type(self) -> int: ...

class LinkProxy:
    def get_info(self, name: bytes) -> LinkInfo: ...
