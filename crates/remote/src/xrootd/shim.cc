// The client library of XRootD as plain functions: each begins one request and returns, and has a function called when that is
// done, by a thread of the library. What is asked and how it is answered stands in ffi.rs.

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include <XProtocol/XProtocol.hh>
#include <XrdCl/XrdClDefaultEnv.hh>
#include <XrdCl/XrdClFile.hh>
#include <XrdCl/XrdClFileSystem.hh>

namespace {

// An error number, 0 if there is none; a number and a text, which are what the request says; the text is the message where
// there is an error.
using Done = void (*)(void *context, int32_t error, uint64_t number, const char *text, size_t length);

struct Callback {
    Done done;
    void *context;
};

int32_t error_of_server(int code)
{
    switch (code) {
    case kXR_FSError:
    case kXR_ServerError:
        return EIO;
    case kXR_NotFile:
        return ENOTDIR;
    default:
        return XProtocol::toErrno(code);
    }
}

int32_t error_of(const XrdCl::XRootDStatus &status)
{
    if (status.IsOK())
        return 0;
    switch (status.code) {
    case XrdCl::errErrorResponse:
        return error_of_server(static_cast<int>(status.errNo));
    case XrdCl::errOSError:
    case XrdCl::errLocalError:
        return status.errNo ? static_cast<int32_t>(status.errNo) : EIO;
    case XrdCl::errOperationExpired:
    case XrdCl::errSocketTimeout:
        return ETIMEDOUT;
    case XrdCl::errConnectionError:
        return ECONNREFUSED;
    case XrdCl::errSocketDisconnected:
    case XrdCl::errStreamDisconnect:
    case XrdCl::errSocketError:
        return ECONNRESET;
    case XrdCl::errInvalidAddr:
        return EHOSTUNREACH;
    case XrdCl::errAuthFailed:
    case XrdCl::errLoginFailed:
        return EACCES;
    case XrdCl::errNotFound:
        return ENOENT;
    case XrdCl::errNotSupported:
    case XrdCl::errNotImplemented:
    case XrdCl::errQueryNotSupported:
        return EOPNOTSUPP;
    case XrdCl::errInvalidArgs:
        return EINVAL;
    default:
        return EIO;
    }
}

// Each request has one, which is gone once it was called.
class Reaction : public XrdCl::ResponseHandler {
public:
    explicit Reaction(Callback callback) : callback_(callback) {}

    void HandleResponse(XrdCl::XRootDStatus *status, XrdCl::AnyObject *response) override
    {
        std::unique_ptr<XrdCl::XRootDStatus> owned_status(status);
        std::unique_ptr<XrdCl::AnyObject> owned_response(response);
        if (status->IsOK() && response)
            answer(*response);
        else
            end(*status);
        delete this;
    }

    // The request was not even begun: nobody else will call.
    void refuse(const XrdCl::XRootDStatus &status)
    {
        end(status);
        delete this;
    }

protected:
    virtual void answer(XrdCl::AnyObject &) { say(0, std::string()); }

    void say(uint64_t number, const std::string &text)
    {
        callback_.done(callback_.context, 0, number, text.data(), text.size());
    }

    void end(const XrdCl::XRootDStatus &status)
    {
        std::string text = status.IsOK() ? std::string() : status.ToStr();
        callback_.done(callback_.context, error_of(status), 0, text.data(), text.size());
    }

private:
    Callback callback_;
};

// The number is how many bytes came.
class ReadReaction : public Reaction {
    using Reaction::Reaction;

    void answer(XrdCl::AnyObject &response) override
    {
        XrdCl::ChunkInfo *chunk = nullptr;
        response.Get(chunk);
        say(chunk ? chunk->length : 0, std::string());
    }
};

// The number is the size; the text is `d` of a directory, `f` of anything else.
class StatReaction : public Reaction {
    using Reaction::Reaction;

    void answer(XrdCl::AnyObject &response) override
    {
        XrdCl::StatInfo *info = nullptr;
        response.Get(info);
        if (!info)
            return end(XrdCl::XRootDStatus(XrdCl::stError, XrdCl::errInvalidResponse));
        say(info->GetSize(), info->TestFlags(XrdCl::StatInfo::IsDir) ? "d" : "f");
    }
};

// The text is, of each name, `d`, `f` or `?`, the name, and a zero.
class ListReaction : public Reaction {
    using Reaction::Reaction;

    void answer(XrdCl::AnyObject &response) override
    {
        XrdCl::DirectoryList *list = nullptr;
        response.Get(list);
        std::string text;
        for (uint32_t index = 0; list && index < list->GetSize(); ++index) {
            const XrdCl::DirectoryList::ListEntry *entry = list->At(index);
            const XrdCl::StatInfo *info = entry->GetStatInfo();
            text += !info ? '?' : info->TestFlags(XrdCl::StatInfo::IsDir) ? 'd' : 'f';
            text += entry->GetName();
            text += '\0';
        }
        say(list ? list->GetSize() : 0, text);
    }
};

// The text is the server's.
class QueryReaction : public Reaction {
    using Reaction::Reaction;

    void answer(XrdCl::AnyObject &response) override
    {
        XrdCl::Buffer *buffer = nullptr;
        response.Get(buffer);
        say(0, buffer ? buffer->ToString() : std::string());
    }
};

// A file that nobody has any more: it is gone when the server has closed it, or not.
class Discarded : public XrdCl::ResponseHandler {
public:
    explicit Discarded(XrdCl::File *file) : file_(file) {}

    void HandleResponse(XrdCl::XRootDStatus *status, XrdCl::AnyObject *response) override
    {
        delete status;
        delete response;
        delete file_;
        delete this;
    }

private:
    XrdCl::File *file_;
};

template <typename Begin>
void begin(Reaction *reaction, Begin request)
{
    XrdCl::XRootDStatus status = request(reaction);
    if (!status.IsOK())
        reaction->refuse(status);
}

const XrdCl::Access::Mode FILE_MODE = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::GR | XrdCl::Access::OR;
const XrdCl::Access::Mode DIRECTORY_MODE = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::UX | XrdCl::Access::GR |
                                           XrdCl::Access::GX | XrdCl::Access::OR | XrdCl::Access::OX;

} // namespace

extern "C" {

// An integer of the library's environment: what a user has set there stays. What it is then.
int nilometer_xrootd_default(const char *key, int value)
{
    XrdCl::Env *env = XrdCl::DefaultEnv::GetEnv();
    env->PutInt(key, value);
    env->GetInt(key, value);
    return value;
}

void *nilometer_xrootd_file_new()
{
    return new XrdCl::File();
}

// `how` is 0 to read, 1 to write, 2 for both, 3 to make a new one and write it. A server lets a file be written by one and read by
// none meanwhile, unless that is forced: recordings are read while they are made.
void nilometer_xrootd_open(void *file, const char *url, int how, Done done, void *context)
{
    static const XrdCl::OpenFlags::Flags FLAGS[] = {XrdCl::OpenFlags::Read, XrdCl::OpenFlags::Write,
                                                    XrdCl::OpenFlags::Update,
                                                    XrdCl::OpenFlags::New | XrdCl::OpenFlags::Write};
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::File *>(file)->Open(url, FLAGS[how] | XrdCl::OpenFlags::Force, FILE_MODE, reaction);
    });
}

void nilometer_xrootd_close(void *file, Done done, void *context)
{
    begin(new Reaction({done, context}),
          [&](Reaction *reaction) { return static_cast<XrdCl::File *>(file)->Close(reaction); });
}

// It is not open, or nobody cares how it is closed.
void nilometer_xrootd_discard(void *file)
{
    XrdCl::File *own = static_cast<XrdCl::File *>(file);
    if (!own->IsOpen()) {
        delete own;
        return;
    }
    Discarded *discarded = new Discarded(own);
    XrdCl::XRootDStatus status = own->Close(discarded);
    if (!status.IsOK()) {
        delete own;
        delete discarded;
    }
}

void nilometer_xrootd_read(void *file, uint64_t offset, uint32_t length, void *into, Done done, void *context)
{
    begin(new ReadReaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::File *>(file)->Read(offset, length, into, reaction);
    });
}

void nilometer_xrootd_write(void *file, uint64_t offset, uint32_t length, const void *from, Done done, void *context)
{
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::File *>(file)->Write(offset, length, from, reaction);
    });
}

void nilometer_xrootd_sync(void *file, Done done, void *context)
{
    begin(new Reaction({done, context}),
          [&](Reaction *reaction) { return static_cast<XrdCl::File *>(file)->Sync(reaction); });
}

void nilometer_xrootd_truncate(void *file, uint64_t size, Done done, void *context)
{
    begin(new Reaction({done, context}),
          [&](Reaction *reaction) { return static_cast<XrdCl::File *>(file)->Truncate(size, reaction); });
}

void *nilometer_xrootd_server_new(const char *url)
{
    return new XrdCl::FileSystem(XrdCl::URL(url));
}

void nilometer_xrootd_server_delete(void *server)
{
    delete static_cast<XrdCl::FileSystem *>(server);
}

void nilometer_xrootd_stat(void *server, const char *path, uint16_t seconds, Done done, void *context)
{
    begin(new StatReaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->Stat(path, reaction, seconds);
    });
}

void nilometer_xrootd_list(void *server, const char *path, Done done, void *context)
{
    begin(new ListReaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->DirList(path, XrdCl::DirListFlags::Stat, reaction);
    });
}

void nilometer_xrootd_unlink(void *server, const char *path, Done done, void *context)
{
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->Rm(path, reaction);
    });
}

void nilometer_xrootd_remove_dir(void *server, const char *path, Done done, void *context)
{
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->RmDir(path, reaction);
    });
}

void nilometer_xrootd_make_dir(void *server, const char *path, Done done, void *context)
{
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->MkDir(path, XrdCl::MkDirFlags::None, DIRECTORY_MODE, reaction);
    });
}

void nilometer_xrootd_rename(void *server, const char *from, const char *to, Done done, void *context)
{
    begin(new Reaction({done, context}), [&](Reaction *reaction) {
        return static_cast<XrdCl::FileSystem *>(server)->Mv(from, to, reaction);
    });
}

// `code` is 0 for the configuration's value of `argument`, 1 for the space at that path.
void nilometer_xrootd_query(void *server, int code, const char *argument, uint16_t seconds, Done done, void *context)
{
    XrdCl::Buffer buffer;
    buffer.FromString(argument);
    begin(new QueryReaction({done, context}), [&](Reaction *reaction) {
        XrdCl::QueryCode::Code which = code ? XrdCl::QueryCode::Space : XrdCl::QueryCode::Config;
        return static_cast<XrdCl::FileSystem *>(server)->Query(which, buffer, reaction, seconds);
    });
}
}
