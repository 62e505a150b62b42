/* A page that is read from a disk may start no worker, which the search is. A hidden frame does its work instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inner = frame.contentWindow
      this.waiting = []
      this.onmessage = null
      // What the worker calls: its answers go out, and messages come in as they would from a thread.
      inner.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inner.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve())
      const load = one => new Promise((resolve, reject) => {
        const script = inner.document.createElement("script")
        script.src = one
        script.onload = resolve
        script.onerror = () => reject(new Error(`${one} cannot be read`))
        inner.document.body.append(script)
      })
      load(url).then(() => {
        this.inner = inner
        this.waiting.forEach(data => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.inner) this.inner.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }

    terminate() {}
  }
}
