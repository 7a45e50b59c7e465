from ._ids import ObjectID

class ObjInfo:
    @property
    def addr(self) -> int: ...

def get_info(loc: ObjectID) -> ObjInfo: ...
