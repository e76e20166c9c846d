"""The Databus client: the events of a stream as the callbacks that a consumer knows, without a relay and without Spark.

    chunks -> buffer -> pages -> dispatcher -> callbacks -> consumers

A *chunk* is one response of a relay; the *buffer* keeps of it what Databus's buffer keeps; a *page* is a run of events
as columns; the *dispatcher* is Databus's state machine; the *callbacks* fan out to the registered consumers.

Source: linkedin/databus, `GenericDispatcher`, `RelayDispatcher`, `DispatcherState`, `MultiConsumerCallback`,
`DbusEventBuffer`.
"""
